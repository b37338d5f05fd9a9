/* Nested arguments: which tensors are among them, and the same with arrays in place of tensors. */
#include "tensor.h"

enum { HAS_TENSOR = 1, HAS_NO_DATA = 2, HAS_GRAD = 4, HAS_DEVICE = 8, HAS_MIXED = 16, HAS_FLOAT8 = 32 };

static __thread int seen; /* device of the tensors that this scan has met; -1: of none */

static int place_bits(TensorObject *t) {
    int place = t->h.device * 256 + t->h.device_index, bits = 0;
    if (seen >= 0 && seen != place) bits |= HAS_MIXED;
    seen = place;
    if (t->array && t->h.device) {
        bits |= HAS_DEVICE;
        if (t->h.dtype >= LAMINA_FLOAT8_E4M3FN) bits |= HAS_FLOAT8;
    }
    return bits;
}

static int scan_value(PyObject *value) {
    if (tensor_check(value)) {
        TensorObject *t = (TensorObject *)value;
        return HAS_TENSOR | (t->h.flags & LAMINA_NO_DATA ? HAS_NO_DATA : 0) | (requires_grad(t) ? HAS_GRAD : 0) |
               place_bits(t);
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
    seen = -1;
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

/* Where the gradient of `t` goes: itself for a leaf, otherwise (node, output number). */
static PyObject *edge_of(TensorObject *t) {
    if (!t->grad_fn || t->grad_fn == Py_None) return Py_NewRef((PyObject *)t);
    PyObject *number = PyLong_FromLongLong(t->output_nr);
    PyObject *edge = number ? PyTuple_Pack(2, t->grad_fn, number) : NULL;
    Py_XDECREF(number);
    return edge;
}

static PyObject *meta_of(TensorObject *t) {
    PyObject *sizes = PyObject_GetAttrString((PyObject *)t, "_sizes");
    PyObject *meta = sizes ? PyTuple_Pack(2, sizes, PyTuple_GET_ITEM(registered.dtypes, t->h.dtype)) : NULL;
    Py_XDECREF(sizes);
    return meta;
}

static int has_stale_history(TensorObject *t) {
    return t->base && t->base != Py_None && !(t->h.flags & FLAG_NO_GRAD_VIEW) && t->grad_version != *t->h.version;
}

/* collect(args, kinds, saved) -> (edges, metas, values, versions) of a call without lists of tensors, or None when
 * something needs Python: see autograd/record.py. */
PyObject *collect(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    if (count != 3 || !PyTuple_Check(given[0]) || !PyTuple_Check(given[1]) || !PyTuple_Check(given[2]))
        return PyErr_Format(PyExc_TypeError, "collect(args, kinds, saved)");
    Py_ssize_t size = PyTuple_GET_SIZE(given[0]);
    if (PyTuple_GET_SIZE(given[1]) < size || PyTuple_GET_SIZE(given[2]) < size) Py_RETURN_NONE;
    PyObject *edges = PyList_New(0), *metas = PyList_New(0), *values = PyList_New(size), *versions = PyList_New(size);
    PyObject *result = NULL;
    if (!edges || !metas || !values || !versions) goto done;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *value = PyTuple_GET_ITEM(given[0], i), *version = Py_NewRef(Py_None);
        long kind = PyLong_AsLong(PyTuple_GET_ITEM(given[1], i));
        if (kind == 1) {
            PyObject *edge = Py_NewRef(Py_None), *meta = Py_NewRef(Py_None);
            if (tensor_check(value)) {
                TensorObject *t = (TensorObject *)value;
                int wanted = requires_grad(t), keep = PyTuple_GET_ITEM(given[2], i) == Py_True;
                if ((wanted && has_stale_history(t)) || (keep && t->h.flags & FLAG_INFERENCE)) kind = 2;
                if (wanted && kind == 1) {
                    Py_SETREF(edge, edge_of(t));
                    Py_SETREF(meta, meta_of(t));
                }
                if (keep) Py_SETREF(version, PyLong_FromUnsignedLongLong(*t->h.version));
                else value = Py_None;
            }
            int bad = !edge || !meta || PyList_Append(edges, edge) < 0 || PyList_Append(metas, meta) < 0;
            Py_XDECREF(edge);
            Py_XDECREF(meta);
            if (bad || !version) {
                Py_XDECREF(version);
                goto done;
            }
        }
        PyList_SET_ITEM(values, i, Py_NewRef(value));
        PyList_SET_ITEM(versions, i, version);
        if (kind == 2) {
            result = Py_NewRef(Py_None);
            goto done;
        }
    }
    result = PyTuple_Pack(4, edges, metas, values, versions);
done:
    Py_XDECREF(edges);
    Py_XDECREF(metas);
    Py_XDECREF(values);
    Py_XDECREF(versions);
    return result;
}
