/* Nested arguments: which tensors are among them, and the same with arrays in place of tensors. */
#include "tensor.h"

enum { HAS_TENSOR = 1, HAS_NO_DATA = 2, HAS_GRAD = 4, HAS_FOREIGN = 8 };

static int scan_value(PyObject *value) {
    if (tensor_check(value)) {
        TensorObject *t = (TensorObject *)value;
        return HAS_TENSOR | (t->h.flags & LAMINA_NO_DATA ? HAS_NO_DATA : 0) | (requires_grad(t) ? HAS_GRAD : 0);
    }
    int bits = 0;
    if (PyTuple_Check(value) || PyList_Check(value)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
            bits |= scan_value(PySequence_Fast_GET_ITEM(value, i));
    } else if (PyDict_Check(value)) {
        PyObject *key, *item;
        Py_ssize_t at = 0;
        while (PyDict_Next(value, &at, &key, &item)) bits |= scan_value(item);
    }
    return bits;
}

PyObject *scan(PyObject *module, PyObject *args) {
    (void)module;
    return PyLong_FromLong(scan_value(args));
}

PyObject *to_arrays(PyObject *module, PyObject *value) {
    if (tensor_check(value)) {
        PyObject *array = ((TensorObject *)value)->array;
        if (array) return Py_NewRef(array);
        PyErr_SetString(PyExc_RuntimeError, "a tensor without data has no array");
        return NULL;
    }
    int is_tuple = PyTuple_CheckExact(value);
    if (!is_tuple && !PyList_CheckExact(value)) return Py_NewRef(value);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    PyObject *copy = is_tuple ? PyTuple_New(count) : PyList_New(count);
    for (Py_ssize_t i = 0; copy && i < count; i++) {
        PyObject *item = to_arrays(module, PySequence_Fast_GET_ITEM(value, i));
        if (!item) Py_CLEAR(copy);
        else if (is_tuple) PyTuple_SET_ITEM(copy, i, item);
        else PyList_SET_ITEM(copy, i, item);
    }
    return copy;
}
