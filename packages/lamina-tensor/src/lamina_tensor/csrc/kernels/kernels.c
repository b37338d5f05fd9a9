/* Eager kernels where NumPy has none or takes many passes: Philox 4x32-10, and the error function.
 *
 * Arguments are C-contiguous buffers; the caller (array_kernels.py) sees to dtypes and sizes.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>

static int writable(PyObject *object, Py_buffer *view) {
    return PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
}

/* philox(out, seed, offset): out[i] is word i % 4 of the block at counter offset + i / 4 with key seed. */
static PyObject *philox(PyObject *module, PyObject *args) {
    PyObject *target;
    unsigned long long seed, offset;
    Py_buffer view;
    (void)module;
    if (!PyArg_ParseTuple(args, "OKK", &target, &seed, &offset) || writable(target, &view) < 0) return NULL;
    uint32_t *out = view.buf;
    const Py_ssize_t count = view.len / 4;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t at = 0; at < count; at += 4) {
        const uint64_t index = offset + (uint64_t)(at / 4);
        uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = index < offset, c3 = 0;
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int round = 0; round < 10; round++) {
            const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
            c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
            c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
            c1 = (uint32_t)b;
            c3 = (uint32_t)a;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        const uint32_t words[4] = {c0, c1, c2, c3};
        const Py_ssize_t left = count - at < 4 ? count - at : 4;
        for (Py_ssize_t k = 0; k < left; k++) out[at + k] = words[k];
    }
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

/* erf32(in, out), erf64(in, out): elementwise, buffers of one size. */
#define ERF(name, type, function)                                                                                  \
    static PyObject *name(PyObject *module, PyObject *args) {                                                      \
        PyObject *source, *target;                                                                                 \
        Py_buffer from, to;                                                                                        \
        (void)module;                                                                                              \
        if (!PyArg_ParseTuple(args, "OO", &source, &target)) return NULL;                                          \
        if (PyObject_GetBuffer(source, &from, PyBUF_C_CONTIGUOUS) < 0) return NULL;                                \
        if (writable(target, &to) < 0) {                                                                           \
            PyBuffer_Release(&from);                                                                               \
            return NULL;                                                                                           \
        }                                                                                                          \
        const type *in = from.buf;                                                                                 \
        type *out = to.buf;                                                                                        \
        const Py_ssize_t count = (from.len < to.len ? from.len : to.len) / (Py_ssize_t)sizeof(type);               \
        Py_BEGIN_ALLOW_THREADS;                                                                                    \
        for (Py_ssize_t k = 0; k < count; k++) out[k] = function(in[k]);                                           \
        Py_END_ALLOW_THREADS;                                                                                      \
        PyBuffer_Release(&from);                                                                                   \
        PyBuffer_Release(&to);                                                                                     \
        Py_RETURN_NONE;                                                                                            \
    }
ERF(erf32, float, erff)
ERF(erf64, double, erf)

static PyMethodDef METHODS[] = {
    {"philox", philox, METH_VARARGS, "Fill a uint32 buffer with random words."},
    {"erf32", erf32, METH_VARARGS, "The error function of float32 numbers."},
    {"erf64", erf64, METH_VARARGS, "The error function of float64 numbers."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_kernels", "Eager kernels.", -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModule_Create(&MODULE); }
