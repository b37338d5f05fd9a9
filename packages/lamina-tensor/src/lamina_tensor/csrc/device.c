/* Tensors in a GPU's memory: the same objects over arrays of the device library. What Python knows of that library
 * (lamina_tensor.cuda) is given by use_device(); before that no such tensor exists. The current stream of each device
 * is kept here, so that compiled code reads it without Python. */
#include "tensor.h"

#define MAX_DEVICES 64

static PyTypeObject *array_type;      /* of the device library's arrays; NULL before the first use */
static PyObject *describe, *make_empty, *make_from_memory, *devices, *kernels;
static int active; /* the library is the one that is chosen now */
static __thread void *streams[MAX_DEVICES];
static struct { int64_t now, peak, total; } accounts[MAX_DEVICES]; /* bytes of tensors' storages; needs the GIL */

void count_memory(int index, int64_t bytes) {
    if (index < 0 || index >= MAX_DEVICES) return;
    accounts[index].now += bytes;
    if (bytes > 0) accounts[index].total += bytes;
    if (accounts[index].now > accounts[index].peak) accounts[index].peak = accounts[index].now;
}

int is_device_array(PyObject *value) { return array_type && PyObject_TypeCheck(value, array_type); }

/* The device library's counterpart of one of NumPy's ufuncs, borrowed; NULL without one, or if there are several
 * devices: the call must then be made with the right one current. */
PyObject *device_kernel(PyObject *ufunc) {
    return active && kernels && PyTuple_GET_SIZE(devices) == 1 ? PyDict_GetItemWithError(kernels, ufunc) : NULL;
}

PyObject *cuda_device(int index) {
    if (devices && index >= 0 && index < PyTuple_GET_SIZE(devices)) return Py_NewRef(PyTuple_GET_ITEM(devices, index));
    PyErr_Format(PyExc_RuntimeError, "there is no CUDA device %d", index);
    return NULL;
}

static int read_sizes(PyObject *tuple, int64_t *into, int ndim) {
    for (int i = 0; i < ndim; i++) {
        into[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (into[i] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

/* Fills the head from describe(array, code) -> (array, address, sizes, strides in elements, code, device index);
 * returns the array to hold, a new reference. `code` >= 0: the element type, where the array's own does not tell. */
static PyObject *fill_from_device(TensorObject *t, PyObject *value, int code) {
    PyObject *found = PyObject_CallFunction(describe, "Oi", value, code), *held = NULL, *sizes, *strides;
    unsigned long long address;
    int index;
    if (!found) return NULL;
    if (!PyArg_ParseTuple(found, "OKO!O!ii", &held, &address, &PyTuple_Type, &sizes, &PyTuple_Type, &strides, &code, &index)) {
        Py_DECREF(found);
        return NULL;
    }
    int ndim = (int)PyTuple_GET_SIZE(sizes);
    if (ndim > LAMINA_MAX_DIMS) {
        PyErr_Format(PyExc_RuntimeError, "a tensor has at most %d dimensions, got %d", LAMINA_MAX_DIMS, ndim);
        held = NULL;
    } else if (reserve_dims(t, ndim) < 0 || read_sizes(sizes, t->h.sizes, ndim) < 0 ||
               read_sizes(strides, t->h.strides, ndim) < 0) {
        held = NULL;
    }
    if (held) {
        t->h.dtype = (int16_t)code;
        t->h.data = (void *)(uintptr_t)address;
        t->h.device = LAMINA_CUDA;
        t->h.device_index = (int8_t)index;
        Py_INCREF(held);
    }
    Py_DECREF(found);
    return held;
}

/* Gives a tensor whose head and array are set a storage of its own; takes over the reference. */
static PyObject *with_storage(TensorObject *t, int counted, void *kind) {
    StorageObject *storage = t->array ? (StorageObject *)CudaStorage_Type.tp_alloc(&CudaStorage_Type, 0) : NULL;
    if (!storage) {
        PyMem_Free(kind);
        Py_DECREF(t);
        return NULL;
    }
    storage->kind = kind;
    storage->owner = Py_NewRef(t->array);
    storage->start = t->h.data;
    int64_t last = 0, empty = 0;
    for (int i = 0; i < t->h.ndim; i++) {
        empty |= t->h.sizes[i] == 0;
        last += (t->h.sizes[i] - 1) * t->h.strides[i];
    }
    storage->nbytes = empty ? 0 : (last + 1) * dtype_itemsize[t->h.dtype];
    storage->device_index = t->h.device_index;
    if (counted) count_memory(storage->device_index, storage->counted = storage->nbytes);
    t->storage = (PyObject *)storage;
    t->h.version = &storage->version;
    return (PyObject *)t;
}

static PyObject *wrap_counted(PyTypeObject *type, PyObject *value, int code, int counted) {
    TensorObject *t = new_tensor(type);
    if (!t) return NULL;
    t->array = fill_from_device(t, value, code);
    for (int i = 0; t->array && i < t->h.ndim; i++)
        if (t->h.sizes[i] == 0) {
            row_major(t);
            break;
        }
    return with_storage(t, counted, NULL);
}

PyObject *wrap_device_array(PyTypeObject *type, PyObject *value, int code) { return wrap_counted(type, value, code, 1); }

/* A view of `parent` when the array lies in its storage, otherwise a tensor of its own. */
PyObject *wrap_device_view(TensorObject *parent, PyObject *value, int code) {
    if (code < 0 && parent->h.dtype >= LAMINA_FLOAT8_E4M3FN) code = parent->h.dtype; /* the device holds its bytes */
    TensorObject *t = new_tensor(registered.tensor_type);
    if (!t || !(t->array = fill_from_device(t, value, code))) {
        Py_XDECREF(t);
        return NULL;
    }
    StorageObject *storage = (StorageObject *)parent->storage;
    for (int i = 0; i < t->h.ndim; i++) /* where an empty view begins means nothing: it may lie behind the memory */
        if (t->h.sizes[i] == 0) t->h.data = parent->h.data;
    char *data = t->h.data;
    if (t->h.device_index != parent->h.device_index || data < storage->start ||
        data >= storage->start + (storage->nbytes ? storage->nbytes : 1)) {
        Py_DECREF(t);
        return wrap_device_array(registered.tensor_type, value, code);
    }
    t->storage = Py_NewRef(parent->storage);
    t->counter = Py_XNewRef(parent->counter);
    t->h.version = parent->h.version;
    t->h.flags = (t->h.flags & ~FLAG_INFERENCE) | LAMINA_IS_VIEW | (parent->h.flags & FLAG_INFERENCE);
    t->h.offset = (data - storage->start) / dtype_itemsize[t->h.dtype];
    return (PyObject *)t;
}

/* -- what compiled code calls ------------------------------------------------------------------------------ */

static int activate(void) {
    if (active) return 0;
    PyObject *module = PyImport_ImportModule("lamina_tensor.cuda.activation");
    PyObject *done = module ? PyObject_CallMethod(module, "activate", NULL) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *as_tuple(int ndim, const int64_t *values) {
    if (!values) return Py_NewRef(Py_None);
    PyObject *tuple = PyTuple_New(ndim);
    for (int i = 0; tuple && i < ndim; i++) {
        PyObject *item = PyLong_FromLongLong(values[i]);
        if (item) PyTuple_SET_ITEM(tuple, i, item);
        else Py_CLEAR(tuple);
    }
    return tuple;
}

/* A new array of the device library, and where it lies. The garbage collector does not see it: it would clear an array
 * that is kept while the collector frees the cycle that held it. (An array is part of no cycle by itself.) */
static PyObject *new_array(int ndim, const int64_t *sizes, const int64_t *strides, int dtype, int index, void **data) {
    PyObject *shape = as_tuple(ndim, sizes), *steps = as_tuple(ndim, strides), *array = NULL;
    PyObject *made = shape && steps ? PyObject_CallFunction(make_empty, "OOii", shape, steps, dtype, index) : NULL;
    unsigned long long address = 0;
    Py_XDECREF(shape);
    Py_XDECREF(steps);
    if (made && PyArg_ParseTuple(made, "OK", &array, &address)) Py_INCREF(array);
    Py_XDECREF(made);
    if (array && PyObject_IS_GC(array)) PyObject_GC_UnTrack(array);
    *data = (void *)(uintptr_t)address;
    return array;
}

PyObject *device_empty(int ndim, const int64_t *sizes, const int64_t *strides, int dtype, int index) {
    if (activate() < 0) return NULL;
    void *data = NULL, *kind = NULL;
    PyObject *array = strides ? NULL : take_kept(ndim, sizes, dtype, index, &data, &kind);
    if (!array) array = new_array(ndim, sizes, strides, dtype, index, &data);
    TensorObject *t = array ? new_tensor(registered.tensor_type) : NULL;
    if (!t || reserve_dims(t, ndim) < 0) {
        PyMem_Free(kind);
        Py_XDECREF(t);
        Py_XDECREF(array);
        return NULL;
    }
    int64_t step = 1; /* the head is known: the array need not be asked */
    for (int i = ndim - 1; i >= 0; i--) {
        t->h.sizes[i] = sizes[i];
        t->h.strides[i] = strides ? strides[i] : step;
        step *= sizes[i] > 1 ? sizes[i] : 1;
    }
    t->h.dtype = (int16_t)dtype;
    t->h.data = data;
    t->h.device = LAMINA_CUDA;
    t->h.device_index = (int8_t)index;
    t->array = array;
    return with_storage(t, 1, kind);
}

PyObject *device_from_memory(void *data, int ndim, const int64_t *sizes, const int64_t *strides, int dtype, int index,
                             PyObject *owner) {
    if (activate() < 0) return NULL;
    PyObject *shape = as_tuple(ndim, sizes), *steps = as_tuple(ndim, strides), *tensor = NULL, *array = NULL;
    if (shape && steps)
        array = PyObject_CallFunction(make_from_memory, "KOOiiO", (unsigned long long)(uintptr_t)data, shape, steps,
                                      dtype, index, owner);
    if (array) tensor = wrap_counted(registered.tensor_type, array, dtype, 0); /* the owner's memory */
    Py_XDECREF(array);
    Py_XDECREF(shape);
    Py_XDECREF(steps);
    return tensor;
}

void *device_stream(int index) { return index >= 0 && index < MAX_DEVICES ? streams[index] : NULL; }

/* -- what Python calls -------------------------------------------------------------------------------------- */

PyObject *use_device(PyObject *module, PyObject *args) {
    PyObject *given[6];
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OOOO!O!", &PyType_Type, &given[0], &given[1], &given[2], &given[3], &PyTuple_Type,
                          &given[4], &PyDict_Type, &given[5]))
        return NULL;
    Py_XSETREF(array_type, (PyTypeObject *)Py_NewRef(given[0]));
    Py_XSETREF(describe, Py_NewRef(given[1]));
    Py_XSETREF(make_empty, Py_NewRef(given[2]));
    Py_XSETREF(make_from_memory, Py_NewRef(given[3]));
    Py_XSETREF(devices, Py_NewRef(given[4]));
    Py_XSETREF(kernels, Py_NewRef(given[5]));
    active = 1;
    Py_RETURN_NONE;
}

PyObject *leave_device(PyObject *module, PyObject *unused) {
    active = 0;
    return drop_kept(module, unused);
}

PyObject *set_stream(PyObject *module, PyObject *args) {
    int index;
    unsigned long long stream;
    (void)module;
    if (!PyArg_ParseTuple(args, "iK", &index, &stream)) return NULL;
    if (index < 0 || index >= MAX_DEVICES) return PyErr_Format(PyExc_ValueError, "there is no CUDA device %d", index);
    void *before = streams[index];
    streams[index] = (void *)(uintptr_t)stream;
    return PyLong_FromVoidPtr(before);
}

/* memory_account(index, reset) -> (bytes now, peak, total ever); reset: the peak becomes what there is now. */
PyObject *memory_account(PyObject *module, PyObject *args) {
    int index, reset;
    (void)module;
    if (!PyArg_ParseTuple(args, "ip", &index, &reset)) return NULL;
    if (index < 0 || index >= MAX_DEVICES) return PyErr_Format(PyExc_ValueError, "there is no CUDA device %d", index);
    if (reset) accounts[index].peak = accounts[index].now;
    return Py_BuildValue("LLL", accounts[index].now, accounts[index].peak, accounts[index].total);
}

/* starts_inside(tensor, other): does the first element of `tensor` lie in the storage of `other`. */
PyObject *starts_inside(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 2 || !tensor_check(args[0]) || !tensor_check(args[1]))
        return PyErr_Format(PyExc_TypeError, "starts_inside(tensor, other)");
    TensorObject *t = (TensorObject *)args[0], *other = (TensorObject *)args[1];
    StorageObject *storage = (StorageObject *)other->storage;
    char *data = t->h.data;
    return PyBool_FromLong(t->h.device == other->h.device && t->h.device_index == other->h.device_index && storage->owner &&
                           data >= storage->start && data < storage->start + storage->nbytes);
}

PyObject *wrap_device(PyObject *module, PyObject *args) {
    PyObject *value, *parent = Py_None;
    int code = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "O|iO", &value, &code, &parent)) return NULL;
    if (!is_device_array(value)) return PyErr_Format(PyExc_TypeError, "wrap_device: %R is no array of the device", value);
    if (parent == Py_None) return wrap_device_array(registered.tensor_type, value, code);
    if (!tensor_check(parent) || ((TensorObject *)parent)->h.device != LAMINA_CUDA)
        return PyErr_Format(PyExc_TypeError, "wrap_device: the parent of a view must be a CUDA tensor");
    return wrap_device_view((TensorObject *)parent, value, code);
}
