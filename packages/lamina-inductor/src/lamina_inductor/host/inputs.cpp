// Reads tensors (tensor_abi) and NumPy arrays, and makes NumPy arrays for results.
#include "launcher.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/arrayobject.h>

namespace {

constexpr int kDtypes = 17;
constexpr int kTypeNumbers = 512;
int type_number[kDtypes];       // of a dtype code; -1: NumPy does not know it (yet)
int item_size[kDtypes];
short code_of[kTypeNumbers];    // of a NumPy type number; -1: none of ours

struct KnownType {
    PyTypeObject *type;
    const lamina_abi *abi;
};
KnownType known[8];
int known_count = 0;

// A static capsule per type: looked up once, then found by the type's address. Types are kept alive by the table.
const lamina_abi *abi_of(PyTypeObject *type) {
    for (int i = 0; i < known_count; ++i)
        if (known[i].type == type) return known[i].abi;
    PyObject *capsule = PyObject_GetAttrString(reinterpret_cast<PyObject *>(type), "__lamina_abi__");
    if (!capsule) { PyErr_Clear(); return nullptr; }
    auto *abi = static_cast<const lamina_abi *>(PyCapsule_GetPointer(capsule, LAMINA_ABI_CAPSULE));
    Py_DECREF(capsule);
    if (!abi) { PyErr_Clear(); return nullptr; }
    if (abi->version != LAMINA_ABI_VERSION || abi->struct_size != (int)sizeof(lamina_tensor)) return nullptr;
    if (known_count < 8) {
        Py_INCREF(type);
        known[known_count++] = {type, abi};
    }
    return abi;
}

bool read_array(PyArrayObject *array, View *view) {
    int number = PyArray_TYPE(array);
    if (number < 0 || number >= kTypeNumbers || code_of[number] < 0) return false;
    if (!PyArray_ISNOTSWAPPED(array) || !PyArray_ISALIGNED(array)) return false;
    view->abi = nullptr;
    view->dtype = code_of[number];
    view->ndim = PyArray_NDIM(array);
    view->sizes = reinterpret_cast<const int64_t *>(PyArray_DIMS(array));
    view->strides = reinterpret_cast<const int64_t *>(PyArray_STRIDES(array));
    view->stride_unit = item_size[view->dtype];
    view->data = PyArray_DATA(array);
    view->version = nullptr;
    view->writable = PyArray_ISWRITEABLE(array);
    return true;
}

void learn(int code, int number, int bytes) {
    type_number[code] = number;
    item_size[code] = bytes;
    if (number >= 0 && number < kTypeNumbers) code_of[number] = static_cast<short>(code);
}

} // namespace

int lm_inputs_setup(void) {
    import_array1(-1);
    for (short &code : code_of) code = -1;
    for (int i = 0; i < kDtypes; ++i) learn(i, -1, 1);
    learn(LAMINA_BOOL, NPY_BOOL, 1);
    learn(LAMINA_UINT8, NPY_UINT8, 1);
    learn(LAMINA_UINT16, NPY_UINT16, 2);
    learn(LAMINA_UINT32, NPY_UINT32, 4);
    learn(LAMINA_INT8, NPY_INT8, 1);
    learn(LAMINA_INT16, NPY_INT16, 2);
    learn(LAMINA_INT32, NPY_INT32, 4);
    // long and long long are two type numbers of one width
    code_of[NPY_LONGLONG] = LAMINA_INT64;
    code_of[NPY_ULONGLONG] = LAMINA_UINT64;
    learn(LAMINA_UINT64, NPY_UINT64, 8);
    learn(LAMINA_INT64, NPY_INT64, 8);
    learn(LAMINA_FLOAT16, NPY_FLOAT16, 2);
    learn(LAMINA_FLOAT32, NPY_FLOAT32, 4);
    learn(LAMINA_FLOAT64, NPY_FLOAT64, 8);
    learn(LAMINA_COMPLEX64, NPY_COMPLEX64, 8);
    learn(LAMINA_COMPLEX128, NPY_COMPLEX128, 16);
    item_size[LAMINA_BFLOAT16] = 2;
    return 0;
}

PyObject *lm_register_dtype(PyObject *, PyObject *arguments) {
    int code, number, bytes;
    if (!PyArg_ParseTuple(arguments, "iii", &code, &number, &bytes)) return nullptr;
    if (code < 0 || code >= kDtypes) return PyErr_Format(PyExc_ValueError, "dtype code %d is not in 0..%d", code, kDtypes - 1);
    learn(code, number, bytes);
    Py_RETURN_NONE;
}

bool lm_read(PyObject *object, View *view) {
    view->object = object;
    if (PyArray_Check(object)) return read_array(reinterpret_cast<PyArrayObject *>(object), view);
    const lamina_abi *abi = abi_of(Py_TYPE(object));
    if (!abi) return false;
    auto *tensor = reinterpret_cast<lamina_tensor *>(object);
    if ((tensor->flags & LAMINA_NO_DATA) || tensor->device != LAMINA_CPU) return false;
    view->abi = abi;
    view->dtype = tensor->dtype;
    view->ndim = tensor->ndim;
    view->sizes = tensor->sizes;
    view->strides = tensor->strides;
    view->stride_unit = 1;
    view->data = tensor->data;
    view->version = tensor->version;
    view->writable = true;
    return true;
}

PyObject *lm_new_array(int dtype, int ndim, const int64_t *sizes, const int64_t *strides, bool contiguous) {
    npy_intp dims[LAMINA_MAX_DIMS], steps[LAMINA_MAX_DIMS];
    for (int i = 0; i < ndim; ++i) {
        dims[i] = sizes[i];
        steps[i] = strides[i] * item_size[dtype];
    }
    if (type_number[dtype] < 0) return PyErr_Format(PyExc_TypeError, "NumPy has no type for dtype code %d", dtype);
    int64_t extent = 1, count = 1;
    for (int i = 0; i < ndim; ++i) {
        extent += (sizes[i] - 1) * strides[i];
        count *= sizes[i];
    }
    if (contiguous || count == 0 || extent == count)
        return PyArray_New(&PyArray_Type, ndim, dims, type_number[dtype], contiguous || count == 0 ? nullptr : steps, nullptr, 0, 0, nullptr);
    // Strides with gaps (or overlaps): NumPy would allocate as many elements as there are, not as far as they reach.
    npy_intp length = extent;
    PyObject *flat = PyArray_SimpleNew(1, &length, type_number[dtype]);
    if (!flat) return nullptr;
    PyObject *view = PyArray_New(&PyArray_Type, ndim, dims, type_number[dtype], steps, lm_array_data(flat), 0, NPY_ARRAY_WRITEABLE, nullptr);
    if (view && PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(view), Py_NewRef(flat)) < 0) Py_CLEAR(view);
    Py_DECREF(flat);
    return view;
}

void *lm_array_data(PyObject *array) { return PyArray_DATA(reinterpret_cast<PyArrayObject *>(array)); }

// A NumPy view of a tensor's memory, for code that runs an operator's reference.
PyObject *lm_array_of(PyObject *, PyObject *value) {
    View view;
    if (!lm_read(value, &view)) return PyErr_Format(PyExc_TypeError, "expected a CPU tensor with data, got %R", (PyObject *)Py_TYPE(value));
    if (!view.abi) return Py_NewRef(value);
    if (type_number[view.dtype] < 0) return PyErr_Format(PyExc_TypeError, "NumPy has no type for dtype code %d", view.dtype);
    npy_intp dims[LAMINA_MAX_DIMS], steps[LAMINA_MAX_DIMS];
    for (int i = 0; i < view.ndim; ++i) {
        dims[i] = view.sizes[i];
        steps[i] = view.strides[i] * item_size[view.dtype];
    }
    PyObject *array = PyArray_New(&PyArray_Type, view.ndim, dims, type_number[view.dtype], steps, view.data, 0,
                                  NPY_ARRAY_WRITEABLE, nullptr);
    if (!array) return nullptr;
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(array), Py_NewRef(value)) < 0) { Py_DECREF(array); return nullptr; }
    return array;
}

// The tensor over an array's memory, of the front end that `like` belongs to; the array itself when `like` is one.
PyObject *lm_like(PyObject *, PyObject *arguments) {
    PyObject *array, *like;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyArray_Type, &array, &like)) return nullptr;
    const lamina_abi *abi = PyArray_Check(like) ? nullptr : abi_of(Py_TYPE(like));
    if (!abi) return Py_NewRef(array);
    View view;
    if (!lm_read(array, &view)) return PyErr_Format(PyExc_TypeError, "an array of this type cannot be a tensor");
    int64_t strides[LAMINA_MAX_DIMS];
    for (int i = 0; i < view.ndim; ++i) strides[i] = view.strides[i] / view.stride_unit;
    return abi->from_memory(view.data, view.ndim, view.sizes, strides, view.dtype, LAMINA_CPU, 0, array);
}
