/* Arrays of a GPU that compiled code made and nobody holds any more, kept for the next result of the same kind:
 * the device library needs some microseconds for a new one. Work on a stream is done in order, so what is put on it
 * later may use the memory at once; an array is kept for the stream for which it was made. */
#include "tensor.h"

#define KEPT 64
#define LARGEST (8 << 20) /* bytes of one */
#define ALL (64 << 20)    /* and of all */

typedef struct {
    uint64_t hash;
    void *stream;
    int dtype, index, ndim;
    int64_t bytes, sizes[];
} Kind;

static struct {
    PyObject *array;
    void *data;
    Kind *kind;
} kept[KEPT];
static int last, paused;
static int64_t bytes_kept;

static size_t kind_bytes(int ndim) { return sizeof(Kind) + (size_t)ndim * sizeof(int64_t); }

static int same(const Kind *a, const Kind *b) {
    return a->hash == b->hash && a->stream == b->stream && a->dtype == b->dtype && a->index == b->index && a->ndim == b->ndim &&
           !memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof(int64_t));
}

static PyObject *take_from(int at) {
    PyObject *array = kept[at].array;
    if (!array) return NULL;
    bytes_kept -= kept[at].kind->bytes;
    PyMem_Free(kept[at].kind);
    kept[at].array = NULL;
    return array;
}

/* What a new contiguous array is; NULL (without an exception): it will not be kept. */
static Kind *kind_of(int ndim, const int64_t *sizes, int dtype, int index) {
    int64_t bytes = dtype_itemsize[dtype];
    uint64_t hash = (uint64_t)dtype * 31 + (uint64_t)index;
    for (int i = 0; i < ndim && bytes <= LARGEST; i++) {
        bytes *= sizes[i];
        hash = (hash ^ (uint64_t)sizes[i]) * 0x9e3779b97f4a7c15u;
    }
    Kind *kind = bytes && bytes <= LARGEST ? PyMem_Malloc(kind_bytes(ndim)) : NULL;
    if (!kind) return NULL;
    kind->hash = hash, kind->bytes = bytes, kind->stream = device_stream(index), kind->dtype = dtype, kind->index = index, kind->ndim = ndim;
    memcpy(kind->sizes, sizes, (size_t)ndim * sizeof(int64_t));
    return kind;
}

/* A kept array (a new reference) and where it lies; NULL without an exception: there is none. `kind` is set when the
 * storage over the array, this one or a new one, is to have it. */
PyObject *take_kept(int ndim, const int64_t *sizes, int dtype, int index, void **data, void **kind) {
    Kind *wanted = paused ? NULL : kind_of(ndim, sizes, dtype, index);
    *kind = wanted;
    for (int i = 0; wanted && i < KEPT; i++) {
        int at = (last - i + KEPT) % KEPT;
        if (!kept[at].array || !same(kept[at].kind, wanted)) continue;
        *data = kept[at].data;
        return take_from(at);
    }
    return NULL;
}

/* Called when a storage goes: keep its array, if nobody else holds it. */
void keep_array(StorageObject *storage) {
    Kind *kind = storage->kind;
    storage->kind = NULL;
    if (!kind) return;
    if (paused || !storage->owner || Py_REFCNT(storage->owner) != 1) {
        PyMem_Free(kind);
        return;
    }
    PyObject *array = storage->owner;
    storage->owner = NULL;
    int at = last = (last + 1) % KEPT;
    PyObject *oldest = take_from(at);
    for (int i = 1; i < KEPT && bytes_kept + kind->bytes > ALL; i++) {
        Py_XDECREF(oldest);
        oldest = take_from((at + i) % KEPT);
    }
    kept[at].array = array;
    kept[at].data = storage->start;
    kept[at].kind = kind;
    bytes_kept += kind->bytes;
    Py_XDECREF(oldest);
}

/* pause_kept(paused): nothing is kept or given while a graph is captured, whose memory is its own. */
PyObject *pause_kept(PyObject *module, PyObject *flag) {
    (void)module;
    paused = PyObject_IsTrue(flag);
    if (paused < 0) return NULL;
    Py_RETURN_NONE;
}

/* drop_kept() -> how many arrays were given back. */
PyObject *drop_kept(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    long count = 0;
    for (int i = 0; i < KEPT; i++) {
        PyObject *array = take_from(i);
        count += array != NULL;
        Py_XDECREF(array);
    }
    return PyLong_FromLong(count);
}
