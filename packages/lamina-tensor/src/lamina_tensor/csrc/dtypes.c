/* Element types: between NumPy's descriptors and the codes of tensor_abi.h. */
#include "tensor.h"

const int8_t dtype_itemsize[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1};

static const int type_nums[] = {NPY_BOOL,  NPY_UINT8, NPY_UINT16, NPY_UINT32,  NPY_UINT64,  NPY_INT8,
                                NPY_INT16, NPY_INT32, NPY_INT64,  NPY_FLOAT16, -1,          NPY_FLOAT32,
                                NPY_FLOAT64, NPY_COMPLEX64, NPY_COMPLEX128, -1, -1};
static PyObject *special[LAMINA_FLOAT8_E5M2 + 1];
static int special_nums[LAMINA_FLOAT8_E5M2 + 1];

int register_special_dtypes(PyObject *descrs) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(descrs, &at, &key, &value)) {
        long code = PyLong_AsLong(key);
        if (code < 0 || code > LAMINA_FLOAT8_E5M2 || !PyArray_DescrCheck(value)) {
            PyErr_SetString(PyExc_TypeError, "special dtypes: expected {code: numpy dtype}");
            return -1;
        }
        Py_INCREF(value);
        special[code] = value;
        special_nums[code] = ((PyArray_Descr *)value)->type_num;
    }
    return 0;
}

int dtype_code(PyArray_Descr *descr) {
    switch (descr->type_num) {
    case NPY_BOOL: return LAMINA_BOOL;
    case NPY_UBYTE: return LAMINA_UINT8;
    case NPY_USHORT: return LAMINA_UINT16;
    case NPY_UINT: return LAMINA_UINT32;
    case NPY_ULONG: return sizeof(long) == 8 ? LAMINA_UINT64 : LAMINA_UINT32;
    case NPY_ULONGLONG: return LAMINA_UINT64;
    case NPY_BYTE: return LAMINA_INT8;
    case NPY_SHORT: return LAMINA_INT16;
    case NPY_INT: return LAMINA_INT32;
    case NPY_LONG: return sizeof(long) == 8 ? LAMINA_INT64 : LAMINA_INT32;
    case NPY_LONGLONG: return LAMINA_INT64;
    case NPY_HALF: return LAMINA_FLOAT16;
    case NPY_FLOAT: return LAMINA_FLOAT32;
    case NPY_DOUBLE: return LAMINA_FLOAT64;
    case NPY_CFLOAT: return LAMINA_COMPLEX64;
    case NPY_CDOUBLE: return LAMINA_COMPLEX128;
    default: break;
    }
    for (int code = LAMINA_BFLOAT16; code <= LAMINA_FLOAT8_E5M2; code++)
        if (special[code] && special_nums[code] == descr->type_num) return code;
    PyErr_Format(PyExc_TypeError,
                 "can't convert np.ndarray of type %R: a tensor's element type is one of bool, (u)int8 to (u)int64, "
                 "float16, bfloat16, float32, float64, complex64, complex128, float8_e4m3fn, float8_e5m2",
                 (PyObject *)descr);
    return -1;
}

PyArray_Descr *descr_of_code(int code) {
    if (type_nums[code] >= 0) return PyArray_DescrFromType(type_nums[code]);
    if (!special[code]) {
        PyErr_Format(PyExc_RuntimeError, "dtype code %d is not registered", code);
        return NULL;
    }
    Py_INCREF(special[code]);
    return (PyArray_Descr *)special[code];
}
