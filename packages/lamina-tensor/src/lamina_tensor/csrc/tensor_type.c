/* The type object of TensorBase: attributes, garbage collection. */
#include "tensor.h"

static int tensor_traverse(TensorObject *t, visitproc visit, void *arg) {
    Py_VISIT(t->array);
    Py_VISIT(t->storage);
    Py_VISIT(t->counter);
    Py_VISIT(t->spec);
    Py_VISIT(t->grad_fn);
    Py_VISIT(t->grad);
    Py_VISIT(t->chain);
    Py_VISIT(t->base);
    Py_VISIT(t->hooks);
    Py_VISIT(t->cache);
    return 0;
}

static int tensor_clear(TensorObject *t) {
    Py_CLEAR(t->spec);
    Py_CLEAR(t->grad_fn);
    Py_CLEAR(t->grad);
    Py_CLEAR(t->chain);
    Py_CLEAR(t->base);
    Py_CLEAR(t->hooks);
    Py_CLEAR(t->cache);
    return 0;
}

static void tensor_dealloc(TensorObject *t) {
    PyObject_GC_UnTrack(t);
    Py_TRASHCAN_BEGIN(t, tensor_dealloc);
    tensor_clear(t);
    Py_CLEAR(t->array);
    Py_CLEAR(t->counter);
    Py_CLEAR(t->storage);
    if (t->h.sizes && t->h.sizes != t->dims) PyMem_Free(t->h.sizes);
    Py_TYPE(t)->tp_free((PyObject *)t);
    Py_TRASHCAN_END;
}

static PyObject *int_tuple(PyTypeObject *type, const int64_t *values, int count) {
    PyObject *tuple = type == &PyTuple_Type ? PyTuple_New(count) : type->tp_alloc(type, count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *item = PyLong_FromLongLong(values[i]);
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static PyObject *get_shape(TensorObject *t, void *unused) {
    (void)unused;
    if (!(t->h.flags & LAMINA_NO_DATA)) return int_tuple(registered.size_type, t->h.sizes, t->h.ndim);
    PyObject *shape = PyObject_GetAttrString(t->spec, "shape");
    PyObject *size = shape ? PyObject_CallOneArg((PyObject *)registered.size_type, shape) : NULL;
    Py_XDECREF(shape);
    return size;
}

static PyObject *get_sizes(TensorObject *t, void *unused) {
    (void)unused;
    if (t->h.flags & LAMINA_NO_DATA) return PyObject_GetAttrString(t->spec, "shape");
    return int_tuple(&PyTuple_Type, t->h.sizes, t->h.ndim);
}

static PyObject *get_strides(TensorObject *t, void *unused) {
    (void)unused;
    if (t->h.flags & LAMINA_NO_DATA) return PyObject_GetAttrString(t->spec, "strides");
    return int_tuple(&PyTuple_Type, t->h.strides, t->h.ndim);
}

static PyObject *get_dtype(TensorObject *t, void *unused) {
    (void)unused;
    return Py_NewRef(PyTuple_GET_ITEM(registered.dtypes, t->h.dtype));
}

static PyObject *get_device(TensorObject *t, void *unused) {
    (void)unused;
    if (t->spec) return PyObject_GetAttrString(t->spec, "device");
    if (t->h.device == LAMINA_CUDA) return cuda_device(t->h.device_index);
    return Py_NewRef(registered.cpu);
}

static PyObject *get_spec(TensorObject *t, void *unused) {
    if (!t->spec) {
        PyObject *shape = get_sizes(t, unused), *strides = get_strides(t, unused);
        PyObject *device = get_device(t, unused);
        if (shape && strides && device)
            t->spec = PyObject_CallFunctionObjArgs(
                registered.make_spec, shape, PyTuple_GET_ITEM(registered.dtypes, t->h.dtype), strides, device, NULL);
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        Py_XDECREF(device);
        if (!t->spec) return NULL;
    }
    return Py_NewRef(t->spec);
}

static PyObject *get_ndim(TensorObject *t, void *unused) {
    (void)unused;
    return PyLong_FromLong(t->h.ndim);
}

static PyObject *get_requires_grad(TensorObject *t, void *unused) {
    (void)unused;
    return PyBool_FromLong(requires_grad(t));
}

static int set_flag(TensorObject *t, PyObject *value, void *bit) {
    int on = value ? PyObject_IsTrue(value) : 0;
    if (on < 0) return -1;
    uint32_t mask = (uint32_t)(uintptr_t)bit;
    t->h.flags = on ? t->h.flags | mask : t->h.flags & ~mask;
    return 0;
}

static PyObject *get_flag(TensorObject *t, void *bit) {
    return PyBool_FromLong(t->h.flags & (uint32_t)(uintptr_t)bit);
}

static PyObject *get_grad_fn(TensorObject *t, void *unused) {
    (void)unused;
    return Py_NewRef(t->grad_fn ? t->grad_fn : Py_None);
}

static int set_grad_fn(TensorObject *t, PyObject *value, void *unused) {
    (void)unused;
    if (value == Py_None) value = NULL;
    Py_XINCREF(value);
    Py_XSETREF(t->grad_fn, value);
    if (value) {
        t->h.flags = (t->h.flags & ~LAMINA_IS_LEAF) | LAMINA_REQUIRES_GRAD;
        t->grad_version = *t->h.version;
    } else {
        t->h.flags |= LAMINA_IS_LEAF;
    }
    return 0;
}

static PyObject *get_grad(TensorObject *t, void *unused) {
    (void)unused;
    return Py_NewRef(t->grad ? t->grad : Py_None);
}

static int set_grad(TensorObject *t, PyObject *value, void *unused) {
    (void)unused;
    if (value == Py_None) value = NULL;
    Py_XINCREF(value);
    Py_XSETREF(t->grad, value);
    t->h.flags = value ? t->h.flags | LAMINA_HAS_GRAD : t->h.flags & ~LAMINA_HAS_GRAD;
    return 0;
}

/* `t.grad = value`, checked by the method of `Tensor`; `del t.grad` is None. */
static int assign_grad(TensorObject *t, PyObject *value, void *unused) {
    if (value && value != Py_None) {
        PyObject *checked = PyObject_CallMethod((PyObject *)t, "_check_grad", "O", value);
        if (!checked) return -1;
        Py_DECREF(checked);
    }
    return set_grad(t, value ? value : Py_None, unused);
}

static PyObject *get_version(TensorObject *t, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(*t->h.version);
}

static int set_version(TensorObject *t, PyObject *value, void *unused) {
    (void)unused;
    unsigned long long version = value ? PyLong_AsUnsignedLongLong(value) : 0;
    if (PyErr_Occurred()) return -1;
    *t->h.version = version;
    return 0;
}

static PyObject *get_data_ptr(TensorObject *t, void *unused) {
    (void)unused;
    return PyLong_FromVoidPtr(t->h.data);
}

#define FLAG(bit) (void *)(uintptr_t)(bit)
static PyGetSetDef tensor_getset[] = {
    {"shape", (getter)get_shape, NULL, "Sizes.", NULL},
    {"_sizes", (getter)get_sizes, NULL, "Sizes as a plain tuple.", NULL},
    {"_strides", (getter)get_strides, NULL, "Strides in elements.", NULL},
    {"dtype", (getter)get_dtype, NULL, "Element type.", NULL},
    {"device", (getter)get_device, NULL, "Where the tensor lives.", NULL},
    {"spec", (getter)get_spec, NULL, "Shape, dtype, strides and device as a TensorSpec.", NULL},
    {"ndim", (getter)get_ndim, NULL, "Number of dimensions.", NULL},
    {"_requires_grad", (getter)get_requires_grad, (setter)set_flag, "", FLAG(LAMINA_REQUIRES_GRAD)},
    {"_is_leaf", (getter)get_flag, NULL, "", FLAG(LAMINA_IS_LEAF)},
    {"_is_view_flag", (getter)get_flag, (setter)set_flag, "", FLAG(LAMINA_IS_VIEW)},
    {"_no_grad_view", (getter)get_flag, (setter)set_flag, "", FLAG(FLAG_NO_GRAD_VIEW)},
    {"_inference", (getter)get_flag, (setter)set_flag, "", FLAG(FLAG_INFERENCE)},
    {"_retains_grad", (getter)get_flag, (setter)set_flag, "", FLAG(FLAG_RETAIN_GRAD)},
    {"_grad_fn", (getter)get_grad_fn, (setter)set_grad_fn, "", NULL},
    {"_grad", (getter)get_grad, (setter)set_grad, "", NULL},
    {"grad", (getter)get_grad, (setter)assign_grad,
     "The accumulated gradient, or None.\n\nRaises (when set):\n    TypeError, RuntimeError: no tensor, or of another shape or "
     "dtype.", NULL},
    {"_version", (getter)get_version, (setter)set_version, "Number of writes to the memory so far.", NULL},
    {"_data_ptr", (getter)get_data_ptr, NULL, "", NULL},
    {NULL}};

static PyMemberDef tensor_members[] = {
    {"_array", T_OBJECT, offsetof(TensorObject, array), READONLY, "ndarray over the elements, or None"},
    {"storage", T_OBJECT, offsetof(TensorObject, storage), READONLY, "What its views share with it."},
    {"_chain", T_OBJECT, offsetof(TensorObject, chain), 0, "view steps from the storage's root"},
    {"_base", T_OBJECT, offsetof(TensorObject, base), 0, "The tensor that this is a view of, or None."},
    {"_hooks", T_OBJECT, offsetof(TensorObject, hooks), 0, ""},
    {"_cache", T_OBJECT, offsetof(TensorObject, cache), 0, ""},
    {"_output_nr", T_LONGLONG, offsetof(TensorObject, output_nr), 0, ""},
    {"_grad_version", T_ULONGLONG, offsetof(TensorObject, grad_version), 0, ""},
    {"_offset", T_LONGLONG, offsetof(TensorObject, h) + offsetof(lamina_tensor, offset), 0, ""},
    {"_code", T_SHORT, offsetof(TensorObject, h) + offsetof(lamina_tensor, dtype), READONLY, "dtype's code"},
    {NULL}};

PyTypeObject TensorBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lamina_tensor._C.TensorBase",
    .tp_basicsize = sizeof(TensorObject),
    .tp_dealloc = (destructor)tensor_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The C part of every tensor; see lamina/tensor_abi.h.",
    .tp_traverse = (traverseproc)tensor_traverse,
    .tp_clear = (inquiry)tensor_clear,
    .tp_members = tensor_members,
    .tp_getset = tensor_getset,
};
