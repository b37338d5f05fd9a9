/* The module lamina_tensor._C: functions over tensors that Python's part calls. */
#define LAMINA_IMPORT_ARRAY
#include "tensor.h"

Registered registered;
__thread int grad_enabled = 1, inference_enabled = 0;

static PyObject *init(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = {"tensor_type", "size_type", "dtypes", "cpu", "modes", "make_spec", "errstate_var",
                            "errstate_value", "slow", "record", "special_dtypes", NULL};
    PyObject *given[10], *special;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOOOOO", words, &given[0], &given[1], &given[2], &given[3],
                                     &given[4], &given[5], &given[6], &given[7], &given[8], &given[9], &special))
        return NULL;
    for (int i = 0; i < 10; i++) Py_INCREF(given[i]);
    registered.tensor_type = (PyTypeObject *)given[0];
    registered.size_type = (PyTypeObject *)given[1];
    registered.dtypes = given[2];
    registered.cpu = given[3];
    registered.modes = given[4];
    registered.make_spec = given[5];
    registered.errstate_var = given[6];
    registered.errstate_value = given[7];
    registered.slow = given[8];
    registered.record = given[9];
    if (register_special_dtypes(special) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_wrap(PyObject *module, PyObject *array) {
    (void)module;
    return wrap_array(registered.tensor_type, array);
}

static PyObject *py_wrap_view(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "wrap_view(parent, array)");
    return wrap_view(args[0], args[1]);
}

static PyObject *py_alias(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 3 || !tensor_check(args[0]) || !PyType_Check(args[1]) ||
        !PyType_IsSubtype((PyTypeObject *)args[1], &TensorBase_Type))
        return PyErr_Format(PyExc_TypeError, "alias(tensor, type, fresh_counter)");
    return alias_tensor((PyTypeObject *)args[1], (TensorObject *)args[0], PyObject_IsTrue(args[2]));
}

static PyObject *py_no_data(PyObject *module, PyObject *args) {
    PyObject *storage, *spec;
    int dtype, device, index;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOiii", &storage, &spec, &dtype, &device, &index)) return NULL;
    return no_data_tensor(storage, spec, dtype, device, index);
}

/* Makes `target` a tensor over what `source` is over; autograd's fields stay. */
static PyObject *py_become(PyObject *module, PyObject *args) {
    TensorObject *target, *source;
    int fresh_counter;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!p", &TensorBase_Type, &target, &TensorBase_Type, &source, &fresh_counter))
        return NULL;
    TensorObject *twin = (TensorObject *)alias_tensor(registered.tensor_type, source, fresh_counter);
    if (!twin || reserve_dims(target, twin->h.ndim) < 0) {
        Py_XDECREF(twin);
        return NULL;
    }
    memcpy(target->h.sizes, twin->h.sizes, 2 * twin->h.ndim * sizeof(int64_t));
    target->h.data = twin->h.data;
    target->h.offset = twin->h.offset;
    target->h.dtype = twin->h.dtype;
    target->h.device = twin->h.device;
    target->h.device_index = twin->h.device_index;
    target->h.flags = (target->h.flags & ~LAMINA_NO_DATA) | (twin->h.flags & LAMINA_NO_DATA);
    target->h.version = twin->h.version;
#define SWAP(field)                                                                                                    \
    do {                                                                                                               \
        PyObject *other = target->field;                                                                               \
        target->field = twin->field;                                                                                   \
        twin->field = other;                                                                                           \
    } while (0)
    SWAP(array);
    SWAP(storage);
    SWAP(counter);
    SWAP(spec);
    SWAP(chain);
    Py_CLEAR(target->cache);
    Py_DECREF(twin);
    Py_RETURN_NONE;
}

static PyObject *py_shares(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 2 || !tensor_check(args[0]) || !PyArray_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "shares(tensor, array)");
    StorageObject *storage = (StorageObject *)((TensorObject *)args[0])->storage;
    char *data = PyArray_BYTES((PyArrayObject *)args[1]);
    return PyBool_FromLong(storage->owner && data >= storage->start && data < storage->start + storage->nbytes);
}

static PyObject *py_bump(PyObject *module, PyObject *tensor) {
    (void)module;
    if (!tensor_check(tensor)) return PyErr_Format(PyExc_TypeError, "bump(tensor)");
    ++*((TensorObject *)tensor)->h.version;
    Py_RETURN_NONE;
}

static PyObject *py_is_grad_enabled(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(grad_enabled);
}

static PyObject *py_set_grad_enabled(PyObject *module, PyObject *value) {
    (void)module;
    int before = grad_enabled, on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    grad_enabled = on;
    return PyBool_FromLong(before);
}

static PyObject *py_is_inference(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(inference_enabled);
}

static PyObject *py_set_inference(PyObject *module, PyObject *value) {
    (void)module;
    int before = inference_enabled, on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    inference_enabled = on;
    return PyBool_FromLong(before);
}

static PyObject *py_empty(PyObject *module, PyObject *args) {
    PyObject *shape;
    int code;
    int64_t sizes[LAMINA_MAX_DIMS];
    (void)module;
    if (!PyArg_ParseTuple(args, "O!i", &PyTuple_Type, &shape, &code)) return NULL;
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    if (ndim > LAMINA_MAX_DIMS)
        return PyErr_Format(PyExc_RuntimeError, "a tensor has at most %d dimensions, got %zd", LAMINA_MAX_DIMS, ndim);
    for (Py_ssize_t i = 0; i < ndim; i++) {
        sizes[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (sizes[i] == -1 && PyErr_Occurred()) return NULL;
    }
    PyObject *capsule = PyObject_GetAttrString((PyObject *)&TensorBase_Type, "__lamina_abi__");
    if (!capsule) return NULL;
    lamina_abi *abi = PyCapsule_GetPointer(capsule, LAMINA_ABI_CAPSULE);
    Py_DECREF(capsule);
    return abi ? abi->empty((int)ndim, sizes, NULL, code, LAMINA_CPU, 0) : NULL;
}

static PyMethodDef functions[] = {
    {"init", (PyCFunction)(void (*)(void))init, METH_VARARGS | METH_KEYWORDS, "Register what Python gives to C."},
    {"wrap", py_wrap, METH_O, "New tensor over an ndarray (copied only when its strides or order cannot be used)."},
    {"restride", (PyCFunction)(void (*)(void))restride, METH_FASTCALL, "Strides of an empty view."},
    {"wrap_view", (PyCFunction)(void (*)(void))py_wrap_view, METH_FASTCALL,
     "New tensor over `array`; shares the parent's storage when the memory does."},
    {"alias", (PyCFunction)(void (*)(void))py_alias, METH_FASTCALL, "Another tensor object over the same elements."},
    {"no_data", py_no_data, METH_VARARGS, "New tensor without data."},
    {"become", py_become, METH_VARARGS, "Let a tensor be over what another is over."},
    {"shares", (PyCFunction)(void (*)(void))py_shares, METH_FASTCALL, "Does the array start in the storage?"},
    {"bump", py_bump, METH_O, "Count a write."},
    {"scan", scan, METH_VARARGS, "Bits of what tensors are among nested arguments."},
    {"write_ufunc", (PyCFunction)(void (*)(void))write_ufunc, METH_FASTCALL, "In-place ufunc if the call is plain."},
    {"collect", (PyCFunction)(void (*)(void))collect, METH_FASTCALL, "What a backward node keeps of a call."},
    {"to_arrays", to_arrays, METH_O, "Nested arguments with each tensor replaced by its ndarray."},
    {"is_grad_enabled", py_is_grad_enabled, METH_NOARGS, "Is this thread recording?"},
    {"set_grad_enabled", py_set_grad_enabled, METH_O, "Switch recording; returns what it was."},
    {"is_inference", py_is_inference, METH_NOARGS, "Is this thread in inference mode?"},
    {"set_inference", py_set_inference, METH_O, "Switch inference mode; returns what it was."},
    {"use_device", use_device, METH_VARARGS, "Register what is known of the device library."},
    {"leave_device", leave_device, METH_NOARGS, "Ask which device library is chosen before memory is next taken."},
    {"set_stream", set_stream, METH_VARARGS, "Set this thread's stream of a device; returns the one before."},
    {"pause_kept", pause_kept, METH_O, "Keep no arrays for later results, and give none, while this is set."},
    {"drop_kept", drop_kept, METH_NOARGS, "Give kept arrays back to the device library; returns how many."},
    {"memory_account", memory_account, METH_VARARGS, "Bytes of storages on a device: (now, peak, ever)."},
    {"starts_inside", (PyCFunction)(void (*)(void))starts_inside, METH_FASTCALL, "Does it lie in the other's storage?"},
    {"wrap_device", wrap_device, METH_VARARGS, "New tensor over an array on the device, of this dtype code (-1: its own)."},
    {"empty", py_empty, METH_VARARGS, "New tensor over aligned, uninitialised memory."},
    {NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "lamina_tensor._C",
                                        "Fields, views and hot paths of tensors.", -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__C(void) {
    import_array();
    PyTypeObject *types[] = {&StorageBase_Type, &NumpyStorage_Type, &TensorBase_Type, &FastOp_Type,
                             &Block_Type, &CudaStorage_Type};
    const char *names[] = {"StorageBase", "NumpyStorage", "TensorBase", "FastOp", "Block",
                           "CudaStorage"};
    PyObject *module = PyModule_Create(&definition);
    PyObject *capsule = module ? abi_capsule() : NULL;
    if (!capsule) return NULL;
    for (int i = 0; i < 6; i++) {
        if (PyType_Ready(types[i]) < 0 || PyModule_AddObjectRef(module, names[i], (PyObject *)types[i]) < 0) return NULL;
    }
    if (PyDict_SetItemString(TensorBase_Type.tp_dict, "__lamina_abi__", capsule) < 0) return NULL;
    PyType_Modified(&TensorBase_Type);
    Py_DECREF(capsule);
    return module;
}
