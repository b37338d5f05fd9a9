/* FastOp: what users call for an operator. Ordinary calls on tensors with data are run here without any Python code:
 * arguments to arrays, one call of NumPy's ufunc (or of a Python kernel), the result wrapped. Everything else (modes,
 * promotion, scalars alone, tensors without data, errors) goes to the dispatcher in Python. */
#include "tensor.h"

enum { KIND_SLOW, KIND_UFUNC, KIND_KERNEL, KIND_VIEW };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *operator_;
    PyObject *kernel; /* a ufunc, or a function of arrays that may return NotImplemented */
    PyObject *name, *doc, *dict, *weakrefs;
    PyObject *spelling; /* the registered name, when several operators share it or it is a reflected operator */
    int kind;
    int arity;
    int bool_result;
    int differentiable; /* the operator has a gradient rule of its own; otherwise a gradient needs its body */
    unsigned int dtypes; /* bit mask of the codes for which the ufunc is right as it is */
} FastOp;

#define IS_FLOAT(code) ((code) >= LAMINA_FLOAT16 && (code) <= LAMINA_FLOAT64)
#define IS_COMPLEX(code) ((code) == LAMINA_COMPLEX64 || (code) == LAMINA_COMPLEX128)
#define IS_INT(code) ((code) >= LAMINA_UINT8 && (code) <= LAMINA_INT64)

PyObject *set_errstate_ignored(void) { return PyContextVar_Set(registered.errstate_var, registered.errstate_value); }

void reset_errstate(PyObject *token) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyContextVar_Reset(registered.errstate_var, token) < 0) PyErr_Clear();
    Py_DECREF(token);
    PyErr_Restore(type, value, trace);
}

static int modes_active(void) {
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("stack"))) return -1;
    PyObject *stack = PyObject_GetAttr(registered.modes, name);
    if (!stack) return -1;
    int active = Py_SIZE(stack) > 0; /* a tuple */
    Py_DECREF(stack);
    return active;
}

static PyObject *call_slow(FastOp *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *tuple = PyTuple_New(count), *kwargs = PyDict_New();
    if (!tuple || !kwargs) goto fail;
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, i), args[count + i]) < 0) goto fail;
    PyObject *result = PyObject_CallFunctionObjArgs(registered.slow, (PyObject *)self, tuple, kwargs, NULL);
    Py_DECREF(tuple);
    Py_DECREF(kwargs);
    return result;
fail:
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    return NULL;
}

/* The operands of the ufunc in `out`, or 0 when the call is not a plain one; *grad: a result takes part in autograd;
 * *device: they are on a GPU. */
static int plain_operands(FastOp *self, PyObject *const *args, Py_ssize_t count, PyObject **out, int *grad, int *device) {
    int code = -1, place = -1;
    if (count != self->arity) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!tensor_check(args[i])) continue;
        TensorObject *t = (TensorObject *)args[i];
        if (!t->array || (code >= 0 && (t->h.dtype != code || t->h.device != place))) return 0;
        code = t->h.dtype;
        place = t->h.device;
        out[i] = t->array;
        if (grad_enabled && requires_grad(t)) *grad = 1;
    }
    *device = place == LAMINA_CUDA;
    if (code < 0 || !(self->dtypes & (1u << code))) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (tensor_check(args[i])) continue;
        if (PyFloat_CheckExact(args[i])) {
            if (!IS_FLOAT(code) && !IS_COMPLEX(code)) return 0;
        } else if (PyLong_CheckExact(args[i])) {
            if (!IS_INT(code) && !IS_FLOAT(code) && !IS_COMPLEX(code)) return 0;
        } else {
            return 0;
        }
        out[i] = args[i];
    }
    return 1;
}

static PyObject *finish(FastOp *self, PyObject *value, PyObject *const *args, Py_ssize_t count, int grad,
                        PyObject *names) {
    PyObject *result = wrap_array(registered.tensor_type, value);
    Py_DECREF(value);
    if (!result || !grad) return result;
    PyObject *tuple = PyTuple_New(count), *kwargs = NULL;
    for (Py_ssize_t i = 0; tuple && i < count; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    if (tuple && names && PyTuple_GET_SIZE(names)) {
        kwargs = PyDict_New();
        for (Py_ssize_t i = 0; kwargs && i < PyTuple_GET_SIZE(names); i++)
            if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, i), args[count + i]) < 0) Py_CLEAR(kwargs);
        if (!kwargs) Py_CLEAR(tuple);
    }
    PyObject *done = NULL;
    if (tuple)
        done = PyObject_CallFunctionObjArgs(registered.record, self->operator_, tuple, kwargs ? kwargs : Py_None,
                                            result, NULL);
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    if (!done) Py_CLEAR(result);
    Py_XDECREF(done);
    return result;
}

/* As call_ufunc, for tensors on a GPU: the device library's ufunc of the same name. */
static PyObject *call_device_ufunc(FastOp *self, PyObject *const *args, Py_ssize_t count, PyObject **operands, int grad) {
    PyObject *kernel = device_kernel(self->kernel), *like = tensor_check(args[0]) ? operands[0] : operands[1];
    PyObject *value = kernel ? PyObject_Vectorcall(kernel, operands, count, NULL) : NULL;
    int right = value && is_device_array(value);
    if (right && !self->bool_result) {
        PyObject *have = PyObject_GetAttrString(value, "dtype"), *want = PyObject_GetAttrString(like, "dtype");
        right = have && want && PyObject_RichCompareBool(have, want, Py_EQ) == 1;
        Py_XDECREF(have);
        Py_XDECREF(want);
    }
    if (right) return finish(self, value, args, count, grad, NULL);
    PyErr_Clear(); /* the dispatcher finds the message that a user should see */
    Py_XDECREF(value);
    return call_slow(self, args, count, NULL);
}

static PyObject *call_ufunc(FastOp *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *operands[3] = {NULL, NULL, NULL};
    int grad = 0, device = 0;
    if (!plain_operands(self, args, count, operands, &grad, &device)) return call_slow(self, args, count, NULL);
    if (device) return call_device_ufunc(self, args, count, operands, grad);
    PyObject *token = set_errstate_ignored();
    if (!token) return NULL;
    PyObject *value = PyObject_Vectorcall(self->kernel, operands, count, NULL);
    reset_errstate(token);
    if (!value) { /* the dispatcher finds the message that a user should see */
        PyErr_Clear();
        return call_slow(self, args, count, NULL);
    }
    PyArray_Descr *have = PyArray_Check(value) ? PyArray_DESCR((PyArrayObject *)value) : NULL;
    if (have && !self->bool_result) {
        PyObject *first = PyArray_Check(operands[0]) ? operands[0] : operands[1];
        if (have->type_num != PyArray_DESCR((PyArrayObject *)first)->type_num) {
            Py_DECREF(value);
            return call_slow(self, args, count, NULL);
        }
    }
    return finish(self, value, args, count, grad, NULL);
}

static int plain_constant(PyObject *value) {
    if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value)) return 1;
    if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) return 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
        if (!PyLong_CheckExact(PySequence_Fast_GET_ITEM(value, i))) return 0;
    return 1;
}

#define MAX_ARGUMENTS 8
static PyObject *call_kernel(FastOp *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *operands[MAX_ARGUMENTS];
    Py_ssize_t total = count + (names ? PyTuple_GET_SIZE(names) : 0);
    int grad = 0, tensors = 0;
    if (total > MAX_ARGUMENTS) return call_slow(self, args, count, names);
    for (Py_ssize_t i = 0; i < total; i++) {
        if (tensor_check(args[i])) {
            TensorObject *t = (TensorObject *)args[i];
            if (!on_host(t)) return call_slow(self, args, count, names);
            operands[i] = t->array;
            tensors++;
            if (grad_enabled && requires_grad(t)) grad = 1;
        } else if (plain_constant(args[i])) {
            operands[i] = args[i];
        } else {
            return call_slow(self, args, count, names);
        }
    }
    if (!tensors || (grad && !self->differentiable)) return call_slow(self, args, count, names);
    PyObject *token = set_errstate_ignored();
    if (!token) return NULL;
    PyObject *value = PyObject_Vectorcall(self->kernel, operands, count, names);
    reset_errstate(token);
    if (!value || value == Py_NotImplemented) {
        PyErr_Clear();
        Py_XDECREF(value);
        return call_slow(self, args, count, names);
    }
    return finish(self, value, args, count, grad, names);
}

/* Notes in `view` by which step it follows from `parent`, as mark_view in views.py does. */
static int mark_view(FastOp *self, TensorObject *parent, TensorObject *view, PyObject *const *args, Py_ssize_t count) {
    static PyObject *empty;
    if (!empty && !(empty = PyDict_New())) return -1;
    PyObject *rest = PyTuple_New(count - 1);
    if (!rest) return -1;
    for (Py_ssize_t i = 1; i < count; i++) PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(args[i]));
    PyObject *step = PyTuple_Pack(4, self->operator_, rest, empty, Py_None);
    Py_DECREF(rest);
    if (!step) return -1;
    Py_ssize_t length = parent->chain && parent->chain != Py_None ? PyTuple_GET_SIZE(parent->chain) : 0;
    PyObject *chain = PyTuple_New(length + 1);
    if (!chain) {
        Py_DECREF(step);
        return -1;
    }
    for (Py_ssize_t i = 0; i < length; i++) PyTuple_SET_ITEM(chain, i, Py_NewRef(PyTuple_GET_ITEM(parent->chain, i)));
    PyTuple_SET_ITEM(chain, length, step);
    view->chain = chain;
    int has_base = parent->base && parent->base != Py_None;
    view->base = Py_NewRef(has_base ? parent->base : (PyObject *)parent);
    if (!grad_enabled || (has_base && parent->h.flags & FLAG_NO_GRAD_VIEW)) view->h.flags |= FLAG_NO_GRAD_VIEW;
    view->grad_version = *view->h.version;
    return 0;
}

static PyObject *call_view(FastOp *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *operands[MAX_ARGUMENTS];
    TensorObject *parent = count && tensor_check(args[0]) ? (TensorObject *)args[0] : NULL;
    if (!parent || !on_host(parent) || count > MAX_ARGUMENTS || (names && PyTuple_GET_SIZE(names)) ||
        (grad_enabled && requires_grad(parent)))
        return call_slow(self, args, count, names);
    operands[0] = parent->array;
    for (Py_ssize_t i = 1; i < count; i++) {
        if (tensor_check(args[i]) || !plain_constant(args[i])) return call_slow(self, args, count, names);
        operands[i] = args[i];
    }
    PyObject *value = PyObject_Vectorcall(self->kernel, operands, count, NULL);
    int empty = value && PyArray_Check(value) && !PyArray_SIZE((PyArrayObject *)value); /* its array has no strides */
    if (!value || value == Py_NotImplemented || empty) {
        PyErr_Clear();
        Py_XDECREF(value);
        return call_slow(self, args, count, names);
    }
    PyObject *view = wrap_view((PyObject *)parent, value);
    Py_DECREF(value);
    if (view && ((TensorObject *)view)->storage == parent->storage &&
        mark_view(self, parent, (TensorObject *)view, args, count) < 0)
        Py_CLEAR(view);
    return view;
}

static PyObject *fastop_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names) {
    FastOp *self = (FastOp *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    int active = self->kind == KIND_SLOW ? 1 : modes_active();
    if (active < 0) return NULL;
    if (active || (self->kind == KIND_UFUNC && names && PyTuple_GET_SIZE(names)))
        return call_slow(self, args, count, names);
    if (self->kind == KIND_UFUNC) return call_ufunc(self, args, count);
    return self->kind == KIND_VIEW ? call_view(self, args, count, names) : call_kernel(self, args, count, names);
}

static PyObject *fastop_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = {"operator", "name", "doc", "kernel", "arity", "dtypes", "bool_result", "spelling", "view", "differentiable", NULL};
    PyObject *operator_, *name, *doc = Py_None, *kernel = Py_None, *spelling = Py_None;
    int arity = 0, bool_result = 0, view = 0, differentiable = 1;
    unsigned int dtypes = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OU|OOiIpOpp", words, &operator_, &name, &doc, &kernel, &arity, &dtypes,
                                     &bool_result, &spelling, &view, &differentiable))
        return NULL;
    FastOp *self = (FastOp *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = fastop_call;
    self->operator_ = Py_NewRef(operator_);
    self->name = Py_NewRef(name);
    self->doc = Py_NewRef(doc);
    self->kernel = Py_NewRef(kernel);
    self->spelling = Py_NewRef(spelling);
    self->arity = arity;
    self->dtypes = dtypes;
    self->bool_result = bool_result;
    self->kind = kernel == Py_None ? KIND_SLOW : arity ? KIND_UFUNC : view ? KIND_VIEW : KIND_KERNEL;
    self->differentiable = differentiable;
    return (PyObject *)self;
}

static int fastop_traverse(FastOp *self, visitproc visit, void *arg) {
    Py_VISIT(self->operator_);
    Py_VISIT(self->kernel);
    Py_VISIT(self->dict);
    return 0;
}

static int fastop_clear(FastOp *self) {
    Py_CLEAR(self->operator_);
    Py_CLEAR(self->kernel);
    Py_CLEAR(self->dict);
    return 0;
}

static void fastop_dealloc(FastOp *self) {
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    fastop_clear(self);
    Py_CLEAR(self->name);
    Py_CLEAR(self->doc);
    Py_CLEAR(self->spelling);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *fastop_get(PyObject *self, PyObject *object, PyObject *type) {
    (void)type;
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyObject *fastop_repr(FastOp *self) { return PyUnicode_FromFormat("<operator %U>", self->name); }

/* What needs Python's part: how to pickle it, its signature. */
static PyObject *ask_python(PyObject *self, const char *function) {
    PyObject *module = PyImport_ImportModule("lamina_tensor.methods");
    PyObject *answer = module ? PyObject_CallMethod(module, function, "O", self) : NULL;
    Py_XDECREF(module);
    return answer;
}

static PyObject *fastop_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return ask_python(self, "reduce_function");
}

static PyObject *fastop_signature(PyObject *self, void *unused) {
    (void)unused;
    return ask_python(self, "signature_of");
}

static PyMethodDef fastop_methods[] = {{"__reduce__", fastop_reduce, METH_NOARGS, "Pickled by name."}, {NULL}};

static PyMemberDef fastop_members[] = {
    {"operator", T_OBJECT_EX, offsetof(FastOp, operator_), READONLY, "the lamina_prims operator"},
    {"__name__", T_OBJECT_EX, offsetof(FastOp, name), 0, "name"},
    {"__qualname__", T_OBJECT_EX, offsetof(FastOp, name), READONLY, "name"},
    {"spelling", T_OBJECT, offsetof(FastOp, spelling), READONLY, "name to resolve among overloads, or None"},
    {"__doc__", T_OBJECT, offsetof(FastOp, doc), 0, "documentation"},
    {NULL}};

static PyGetSetDef fastop_getset[] = {
    {"__signature__", fastop_signature, NULL, NULL, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {NULL}};

PyTypeObject FastOp_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lamina_tensor._C.FastOp",
    .tp_basicsize = sizeof(FastOp),
    .tp_dealloc = (destructor)fastop_dealloc,
    .tp_vectorcall_offset = offsetof(FastOp, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = (reprfunc)fastop_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_traverse = (traverseproc)fastop_traverse,
    .tp_clear = (inquiry)fastop_clear,
    .tp_weaklistoffset = offsetof(FastOp, weakrefs),
    .tp_dictoffset = offsetof(FastOp, dict),
    .tp_members = fastop_members,
    .tp_methods = fastop_methods,
    .tp_getset = fastop_getset,
    .tp_descr_get = fastop_get,
    .tp_new = fastop_new,
};
