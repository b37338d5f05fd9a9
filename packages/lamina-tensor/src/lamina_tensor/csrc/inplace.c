/* The fast path of in-place operators: one ufunc call that writes into the tensor's own array. */
#include "tensor.h"

static int overlaps_itself(TensorObject *t) {
    for (int i = 0; i < t->h.ndim; i++)
        if (t->h.strides[i] == 0 && t->h.sizes[i] > 1) return 1;
    return 0;
}

static int modes_or_graph(TensorObject *target, TensorObject *other) {
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("stack"))) return 1;
    PyObject *stack = PyObject_GetAttr(registered.modes, name);
    if (!stack) return 1;
    int busy = Py_SIZE(stack) > 0; /* a tuple */
    Py_DECREF(stack);
    if (busy || !grad_enabled) return busy;
    TensorObject *base = target->base && target->base != Py_None ? (TensorObject *)target->base : NULL;
    return requires_grad(target) || (other && requires_grad(other)) || (base && requires_grad(base));
}

/* write_ufunc(ufunc, dtypes, target, args) -> bool: False when the call is not plain; nothing is written then. */
PyObject *write_ufunc(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 4 || !PyTuple_Check(args[3])) return PyErr_Format(PyExc_TypeError, "write_ufunc(ufunc, dtypes, target, args)");
    unsigned long dtypes = PyLong_AsUnsignedLong(args[1]);
    TensorObject *target = (TensorObject *)args[2], *other = NULL;
    Py_ssize_t given = PyTuple_GET_SIZE(args[3]);
    if (!tensor_check(args[2]) || given > 1 || !target->array || !(dtypes >> target->h.dtype & 1)) Py_RETURN_FALSE;
    int device = target->h.device == LAMINA_CUDA;
    PyObject *function = device ? device_kernel(args[0]) : args[0];
    if (!function) Py_RETURN_FALSE;
    PyObject *operands[3] = {target->array, NULL, NULL};
    if (given) {
        PyObject *value = PyTuple_GET_ITEM(args[3], 0);
        if (tensor_check(value)) {
            other = (TensorObject *)value;
            if (!other->array || other->h.device != target->h.device || other->h.dtype != target->h.dtype || other->h.ndim > target->h.ndim) Py_RETURN_FALSE;
            operands[1] = other->array;
        } else {
            int code = target->h.dtype, real = code >= LAMINA_FLOAT16 && code <= LAMINA_COMPLEX128;
            if (!(PyLong_CheckExact(value) && code != LAMINA_BOOL) && !(PyFloat_CheckExact(value) && real))
                Py_RETURN_FALSE;
            operands[1] = value;
        }
    }
    if (target->h.flags & FLAG_INFERENCE || overlaps_itself(target) || modes_or_graph(target, other)) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_FALSE;
    }
    if (!device && !PyArray_ISWRITEABLE((PyArrayObject *)target->array)) Py_RETURN_FALSE;
    operands[given + 1] = target->array; /* the output, as a positional argument */
    PyObject *token = set_errstate_ignored();
    if (!token) return NULL;
    PyObject *done = PyObject_Vectorcall(function, operands, given + 2, NULL);
    reset_errstate(token);
    if (!done) { /* shapes that do not fit: the slow path finds the words */
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    Py_DECREF(done);
    ++*target->h.version;
    Py_RETURN_TRUE;
}
