/* TensorBase: the C part of every tensor. It holds the fields; what they mean is decided in Python. */
#include "tensor.h"

int reserve_dims(TensorObject *t, int ndim) {
    if (t->h.sizes && t->h.sizes != t->dims) PyMem_Free(t->h.sizes);
    t->h.sizes = t->dims;
    if (ndim > INLINE_DIMS) {
        t->h.sizes = PyMem_Malloc(2 * ndim * sizeof(int64_t));
        if (!t->h.sizes) {
            t->h.sizes = t->dims;
            PyErr_NoMemory();
            return -1;
        }
    }
    t->h.strides = t->h.sizes + ndim;
    t->h.ndim = ndim;
    return 0;
}

/* Fills the head from an ndarray whose strides are known to be usable. */
int fill_from_array(TensorObject *t, PyArrayObject *array) {
    int code = dtype_code(PyArray_DESCR(array));
    if (code < 0) return -1;
    int ndim = PyArray_NDIM(array);
    if (ndim > LAMINA_MAX_DIMS) {
        PyErr_Format(PyExc_RuntimeError, "a tensor has at most %d dimensions, got %d", LAMINA_MAX_DIMS, ndim);
        return -1;
    }
    if (reserve_dims(t, ndim) < 0) return -1;
    int64_t item = dtype_itemsize[code];
    for (int i = 0; i < ndim; i++) {
        t->h.sizes[i] = PyArray_DIM(array, i);
        t->h.strides[i] = PyArray_STRIDE(array, i) / item;
    }
    for (int i = ndim - 1; i >= 0; i--) /* NumPy gives new axes the stride 0, PyTorch the one that continues */
        if (t->h.sizes[i] == 1 && t->h.strides[i] == 0)
            t->h.strides[i] = i + 1 < ndim ? t->h.strides[i + 1] * (t->h.sizes[i + 1] > 1 ? t->h.sizes[i + 1] : 1) : 1;
    t->h.dtype = (int16_t)code;
    t->h.data = PyArray_DATA(array);
    return 0;
}

/* An ndarray with native order, alignment and non-negative strides in whole elements: the array, or a copy. */
static PyArrayObject *usable(PyObject *value) {
    if (!PyArray_Check(value)) {
        value = PyArray_FromAny(value, NULL, 0, 0, NPY_ARRAY_DEFAULT, NULL);
        return (PyArrayObject *)value;
    }
    PyArrayObject *array = (PyArrayObject *)value;
    int item = (int)PyArray_ITEMSIZE(array), good = PyArray_ISALIGNED(array) && PyArray_ISNOTSWAPPED(array);
    for (int i = 0; good && i < PyArray_NDIM(array); i++) {
        npy_intp stride = PyArray_STRIDE(array, i);
        good = item && stride >= 0 && stride % item == 0;
    }
    if (good && PyArray_CheckExact(value)) {
        Py_INCREF(value);
        return array;
    }
    if (good) return (PyArrayObject *)PyArray_EnsureArray((Py_INCREF(value), value));
    return (PyArrayObject *)PyArray_FromAny(value, NULL, 0, 0,
                                            NPY_ARRAY_CARRAY | NPY_ARRAY_ENSURECOPY | NPY_ARRAY_ENSUREARRAY, NULL);
}

/* Strides of an empty tensor, whose array has none: as if sizes of 0 were 1. */
void row_major(TensorObject *t) {
    int64_t step = 1;
    for (int i = t->h.ndim - 1; i >= 0; i--) {
        t->h.strides[i] = step;
        if (t->h.sizes[i] > 1) step *= t->h.sizes[i];
    }
}

/* restride(tensor, strides): the strides of an empty view, which its array does not tell. */
PyObject *restride(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 2 || !tensor_check(args[0]) || !PyTuple_Check(args[1]) ||
        PyTuple_GET_SIZE(args[1]) != ((TensorObject *)args[0])->h.ndim)
        return PyErr_Format(PyExc_TypeError, "restride(tensor, strides)");
    TensorObject *t = (TensorObject *)args[0];
    for (int i = 0; i < t->h.ndim; i++) {
        int64_t stride = PyLong_AsLongLong(PyTuple_GET_ITEM(args[1], i));
        if (stride == -1 && PyErr_Occurred()) return NULL;
        t->h.strides[i] = stride;
    }
    Py_RETURN_NONE;
}

TensorObject *new_tensor(PyTypeObject *type) {
    TensorObject *t = (TensorObject *)type->tp_alloc(type, 0);
    if (!t) return NULL;
    t->h.sizes = t->dims;
    t->h.strides = t->dims;
    t->h.flags = LAMINA_IS_LEAF;
    if (inference_enabled) t->h.flags |= FLAG_INFERENCE;
    return t;
}

PyObject *wrap_array(PyTypeObject *type, PyObject *value) {
    if (is_device_array(value)) return wrap_device_array(type, value, -1);
    PyArrayObject *array = usable(value);
    if (!array) return NULL;
    TensorObject *t = new_tensor(type);
    StorageObject *storage = t ? (StorageObject *)NumpyStorage_Type.tp_alloc(&NumpyStorage_Type, 0) : NULL;
    if (!storage || fill_from_array(t, array) < 0) {
        Py_DECREF(array);
        Py_XDECREF(storage);
        Py_XDECREF(t);
        return NULL;
    }
    Py_INCREF(array);
    storage->owner = (PyObject *)array;
    storage->start = PyArray_BYTES(array);
    if (!PyArray_SIZE(array)) row_major(t);
    int64_t last = 0;
    for (int i = 0; i < t->h.ndim; i++)
        if (t->h.sizes[i] > 0) last += (t->h.sizes[i] - 1) * t->h.strides[i];
    storage->nbytes = PyArray_SIZE(array) ? (last + 1) * dtype_itemsize[t->h.dtype] : 0;
    t->array = (PyObject *)array;
    t->storage = (PyObject *)storage;
    t->h.version = &storage->version;
    return (PyObject *)t;
}

/* True when the array's memory lies inside the parent's storage. */
static int inside(TensorObject *parent, PyArrayObject *array) {
    StorageObject *storage = (StorageObject *)parent->storage;
    char *data = PyArray_BYTES(array);
    return data >= storage->start && data < storage->start + (storage->nbytes ? storage->nbytes : 1);
}

static PyObject *attach_view(TensorObject *parent, PyArrayObject *array) {
    TensorObject *t = new_tensor(registered.tensor_type);
    if (!t || fill_from_array(t, array) < 0) {
        Py_XDECREF(t);
        return NULL;
    }
    if (PyArray_ISWRITEABLE((PyArrayObject *)parent->array)) PyArray_ENABLEFLAGS(array, NPY_ARRAY_WRITEABLE);
    Py_INCREF(array);
    t->array = (PyObject *)array;
    Py_INCREF(parent->storage);
    t->storage = parent->storage;
    Py_XINCREF(parent->counter);
    t->counter = parent->counter;
    t->h.version = parent->h.version;
    t->h.flags = (t->h.flags & ~FLAG_INFERENCE) | LAMINA_IS_VIEW | (parent->h.flags & FLAG_INFERENCE);
    int64_t item = dtype_itemsize[t->h.dtype];
    t->h.offset = (PyArray_BYTES(array) - ((StorageObject *)parent->storage)->start) / item;
    return (PyObject *)t;
}

PyObject *wrap_view(PyObject *parent_object, PyObject *value) {
    TensorObject *parent = (TensorObject *)parent_object;
    if (!tensor_check(parent_object) || !parent->array) {
        PyErr_SetString(PyExc_TypeError, "wrap_view: expected a tensor with data");
        return NULL;
    }
    if (parent->h.device == LAMINA_CUDA && is_device_array(value)) return wrap_device_view(parent, value, -1);
    if (!PyArray_Check(value)) return wrap_array(registered.tensor_type, value);
    PyArrayObject *array = usable(value);
    if (!array) return NULL;
    PyObject *result;
    if (!inside(parent, array)) {
        result = wrap_array(registered.tensor_type, (PyObject *)array);
    } else if ((PyObject *)array == parent->array) { /* two tensors never own one ndarray object */
        PyObject *view = PyArray_View(array, NULL, NULL);
        result = view ? attach_view(parent, (PyArrayObject *)view) : NULL;
        Py_XDECREF(view);
    } else {
        result = attach_view(parent, array);
    }
    Py_DECREF(array);
    return result;
}

PyObject *alias_tensor(PyTypeObject *type, TensorObject *source, int fresh_counter) {
    TensorObject *t = new_tensor(type);
    if (!t || reserve_dims(t, source->h.ndim) < 0) {
        Py_XDECREF(t);
        return NULL;
    }
    memcpy(t->h.sizes, source->h.sizes, 2 * source->h.ndim * sizeof(int64_t));
    t->h.data = source->h.data;
    t->h.offset = source->h.offset;
    t->h.dtype = source->h.dtype;
    t->h.device = source->h.device;
    t->h.device_index = source->h.device_index;
    t->h.flags = (t->h.flags & ~FLAG_INFERENCE) | (source->h.flags & (LAMINA_NO_DATA | FLAG_INFERENCE));
    t->array = Py_XNewRef(source->array);
    t->storage = Py_XNewRef(source->storage);
    t->spec = Py_XNewRef(source->spec);
    t->chain = Py_XNewRef(source->chain);
    if (fresh_counter) {
        t->counter = StorageBase_Type.tp_alloc(&StorageBase_Type, 0);
        if (!t->counter) {
            Py_DECREF(t);
            return NULL;
        }
        t->h.version = &((StorageObject *)t->counter)->version;
    } else {
        t->counter = Py_XNewRef(source->counter);
        t->h.version = source->h.version;
    }
    return (PyObject *)t;
}

/* A tensor without data; `spec` says all about it. Sizes that are no plain integers are -1 in the head. */
PyObject *no_data_tensor(PyObject *storage, PyObject *spec, int dtype, int device, int device_index) {
    PyObject *shape = PyObject_GetAttrString(spec, "shape"), *strides = NULL;
    TensorObject *t = NULL;
    if (!shape || !(strides = PyObject_GetAttrString(spec, "strides"))) goto fail;
    if (!PyTuple_Check(shape) || !PyTuple_Check(strides) || PyTuple_GET_SIZE(shape) != PyTuple_GET_SIZE(strides) ||
        !PyObject_TypeCheck(storage, &StorageBase_Type)) {
        PyErr_SetString(PyExc_TypeError, "no_data_tensor: expected a storage and a TensorSpec");
        goto fail;
    }
    int ndim = (int)PyTuple_GET_SIZE(shape);
    t = new_tensor(registered.tensor_type);
    if (!t || reserve_dims(t, ndim) < 0) goto fail;
    for (int i = 0; i < ndim; i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i), *stride = PyTuple_GET_ITEM(strides, i);
        t->h.sizes[i] = PyLong_CheckExact(size) ? PyLong_AsLongLong(size) : -1;
        t->h.strides[i] = PyLong_CheckExact(stride) ? PyLong_AsLongLong(stride) : -1;
    }
    t->h.dtype = (int16_t)dtype;
    t->h.device = (int8_t)device;
    t->h.device_index = (int8_t)device_index;
    t->h.flags |= LAMINA_NO_DATA;
    t->storage = Py_NewRef(storage);
    t->spec = Py_NewRef(spec);
    t->h.version = &((StorageObject *)storage)->version;
    Py_DECREF(shape);
    Py_DECREF(strides);
    return (PyObject *)t;
fail:
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(t);
    return NULL;
}

/* Whether gradients are wanted: its own flag, or that of the base it has a part in. */
int requires_grad(TensorObject *t) {
    if (t->h.flags & LAMINA_REQUIRES_GRAD) return 1;
    return t->base && t->base != Py_None && !(t->h.flags & FLAG_NO_GRAD_VIEW) &&
           (((TensorObject *)t->base)->h.flags & LAMINA_REQUIRES_GRAD);
}
