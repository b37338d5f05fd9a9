/* Storages: what tensors that view the same memory have in common. Kinds without data are Python subclasses. */
#include "tensor.h"

static int storage_traverse(StorageObject *self, visitproc visit, void *arg) {
    Py_VISIT(self->owner);
    return 0;
}

static int storage_clear(StorageObject *self) {
    Py_CLEAR(self->owner);
    return 0;
}

static void storage_dealloc(StorageObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->counted) count_memory(self->device_index, -self->counted);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    if (self->kind) keep_array(self);
    storage_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *storage_array(StorageObject *self, void *unused) {
    (void)unused;
    PyObject *owner = self->owner ? self->owner : Py_None;
    Py_INCREF(owner);
    return owner;
}

static PyMemberDef storage_members[] = {
    {"version", T_ULONGLONG, offsetof(StorageObject, version), 0, "number of writes so far"},
    {"nbytes", T_LONGLONG, offsetof(StorageObject, nbytes), READONLY, "size in bytes (0 without data)"},
    {NULL}};

static PyGetSetDef storage_getset[] = {
    {"array", (getter)storage_array, NULL, "the ndarray that owns the memory, or None", NULL}, {NULL}};

PyTypeObject StorageBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lamina_tensor._C.StorageBase",
    .tp_basicsize = sizeof(StorageObject),
    .tp_dealloc = (destructor)storage_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What tensors that view the same memory share: the version counter, and the memory if there is any.",
    .tp_traverse = (traverseproc)storage_traverse,
    .tp_clear = (inquiry)storage_clear,
    .tp_weaklistoffset = offsetof(StorageObject, weakrefs),
    .tp_members = storage_members,
    .tp_getset = storage_getset,
    .tp_new = PyType_GenericNew,
};

PyTypeObject NumpyStorage_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lamina_tensor._C.NumpyStorage",
    .tp_basicsize = sizeof(StorageObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Memory of an ndarray. Made by wrapping one.",
    .tp_traverse = (traverseproc)storage_traverse,
    .tp_clear = (inquiry)storage_clear,
    .tp_base = &StorageBase_Type,
};

PyTypeObject CudaStorage_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lamina_tensor._C.CudaStorage",
    .tp_basicsize = sizeof(StorageObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Memory of a GPU, held by an array of the device library. Made by wrapping one.",
    .tp_traverse = (traverseproc)storage_traverse,
    .tp_clear = (inquiry)storage_clear,
    .tp_base = &StorageBase_Type,
};
