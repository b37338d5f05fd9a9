/* Memory for compiled code's results: aligned to 64 bytes, big blocks kept for reuse (fresh pages cost more than the
 * kernels that fill them), and the capsule through which compiled code asks for it. */
#include "tensor.h"
#include <stdbool.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define ALIGNMENT 64
#define POOL_FROM (64 << 10)          /* smaller blocks go to malloc, which is fast for them */
#define POOL_LIMIT (512ll << 20)      /* bytes kept at most */
#define POOL_CLASSES 256
#define HUGE_PAGE (2 << 20)
#define HUGE_FROM (4 << 20)           /* a kernel that walks down columns touches a page per element */

typedef struct {
    PyObject_HEAD
    void *data;
    size_t size;
    int size_class;
} BlockObject;

typedef struct free_block {
    struct free_block *next;
} free_block;

static free_block *pool[POOL_CLASSES];
static size_t pooled_bytes;

/* Eight classes per power of two: at most 12.5 % is wasted. */
static int class_of(size_t size, size_t *rounded) {
    int exponent = 63 - __builtin_clzll(size);
    size_t step = ((size_t)1 << exponent) >> 3;
    size_t eighth = (size - ((size_t)1 << exponent) + step - 1) / step;
    *rounded = ((size_t)1 << exponent) + eighth * step;
    int index = (exponent - 16) * 8 + (int)eighth;
    return index < POOL_CLASSES ? index : -1;
}

static PyObject *new_block(size_t size) {
    int size_class = -1;
    void *data = NULL;
    if (size >= POOL_FROM) {
        size_class = class_of(size, &size);
        if (size_class >= 0 && pool[size_class]) {
            data = pool[size_class];
            pool[size_class] = pool[size_class]->next;
            pooled_bytes -= size;
        }
    }
    bool fresh = !data;
    if (!data && posix_memalign(&data, size >= HUGE_FROM ? HUGE_PAGE : ALIGNMENT, size ? size : ALIGNMENT))
        return PyErr_NoMemory();
#ifdef MADV_HUGEPAGE
    if (fresh && size >= HUGE_FROM) madvise(data, size, MADV_HUGEPAGE);
#endif
    BlockObject *block = PyObject_New(BlockObject, &Block_Type);
    if (!block) {
        free(data);
        return NULL;
    }
    block->data = data;
    block->size = size;
    block->size_class = size_class;
    return (PyObject *)block;
}

static void block_dealloc(BlockObject *self) {
    if (self->size_class >= 0 && pooled_bytes + self->size <= POOL_LIMIT) {
        free_block *block = self->data;
        block->next = pool[self->size_class];
        pool[self->size_class] = block;
        pooled_bytes += self->size;
    } else {
        free(self->data);
    }
    PyObject_Free(self);
}

PyTypeObject Block_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lamina_tensor._C.Block",
    .tp_basicsize = sizeof(BlockObject),
    .tp_dealloc = (destructor)block_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Memory that a tensor of compiled code lives in.",
};

static PyObject *tensor_over(void *data, int ndim, const int64_t *sizes, const int64_t *strides, int dtype,
                             PyObject *owner) {
    npy_intp dims[LAMINA_MAX_DIMS], steps[LAMINA_MAX_DIMS];
    int64_t item = dtype_itemsize[dtype], step = item;
    for (int i = ndim - 1; i >= 0; i--) {
        dims[i] = sizes[i];
        steps[i] = strides ? strides[i] * item : step;
        step *= sizes[i] > 1 ? sizes[i] : 1;
    }
    PyArray_Descr *descr = descr_of_code(dtype);
    if (!descr) return NULL;
    PyObject *array =
        PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, steps, data, NPY_ARRAY_WRITEABLE, NULL);
    if (!array) return NULL;
    Py_INCREF(owner);
    if (PyArray_SetBaseObject((PyArrayObject *)array, owner) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    PyArray_UpdateFlags((PyArrayObject *)array, NPY_ARRAY_UPDATE_ALL);
    PyObject *tensor = wrap_array(registered.tensor_type, array);
    Py_DECREF(array);
    return tensor;
}

static int check_request(int ndim, int dtype, int device) {
    if (ndim < 0 || ndim > LAMINA_MAX_DIMS || dtype < 0 || dtype > LAMINA_FLOAT8_E5M2) {
        PyErr_Format(PyExc_ValueError, "a tensor of %d dimensions and dtype code %d cannot be made", ndim, dtype);
        return -1;
    }
    if (device != LAMINA_CPU && device != LAMINA_CUDA) {
        PyErr_Format(PyExc_RuntimeError, "no memory for device code %d", device);
        return -1;
    }
    return 0;
}

static PyObject *abi_empty(int ndim, const int64_t *sizes, const int64_t *strides, int dtype, int device,
                           int device_index) {
    if (check_request(ndim, dtype, device) < 0) return NULL;
    if (device == LAMINA_CUDA) return device_empty(ndim, sizes, strides, dtype, device_index);
    int64_t last = 0, count = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        if (sizes[i] < 0) {
            PyErr_Format(PyExc_ValueError, "a tensor cannot have the size %lld", (long long)sizes[i]);
            return NULL;
        }
        if (strides && sizes[i] > 0) last += (sizes[i] - 1) * strides[i];
        count *= sizes[i];
    }
    int64_t elements = count == 0 ? 0 : strides ? last + 1 : count;
    PyObject *block = new_block((size_t)elements * dtype_itemsize[dtype]);
    if (!block) return NULL;
    PyObject *tensor = tensor_over(((BlockObject *)block)->data, ndim, sizes, strides, dtype, block);
    Py_DECREF(block);
    return tensor;
}

static PyObject *abi_from_memory(void *data, int ndim, const int64_t *sizes, const int64_t *strides, int dtype,
                                 int device, int device_index, PyObject *owner) {
    if (check_request(ndim, dtype, device) < 0) return NULL;
    if (device == LAMINA_CUDA) return device_from_memory(data, ndim, sizes, strides, dtype, device_index, owner);
    return tensor_over(data, ndim, sizes, strides, dtype, owner);
}

static PyObject *abi_grad(PyObject *tensor) {
    PyObject *grad = ((TensorObject *)tensor)->grad;
    return grad ? grad : Py_None;
}

static lamina_abi abi = {LAMINA_ABI_VERSION, sizeof(lamina_tensor), &TensorBase_Type, abi_empty, abi_from_memory,
                         device_stream, abi_grad};

PyObject *abi_capsule(void) { return PyCapsule_New(&abi, LAMINA_ABI_CAPSULE, NULL); }
