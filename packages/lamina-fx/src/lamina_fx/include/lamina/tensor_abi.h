/* How a tensor looks from C: interface `tensor_abi`, version 0.
 *
 * A front end's tensor type is a subtype of a small C type whose instances begin with `lamina_tensor`. The type has a
 * class attribute `__lamina_abi__`, a capsule named LAMINA_ABI_CAPSULE that points to a `lamina_abi`. Guards and
 * launchers fetch the capsule once per type, then read tensors directly. Everything here needs the GIL.
 */
#ifndef LAMINA_TENSOR_ABI_H
#define LAMINA_TENSOR_ABI_H
#include <Python.h>
#include <stdint.h>

#define LAMINA_ABI_VERSION 0
#define LAMINA_ABI_CAPSULE "lamina.tensor_abi"
#define LAMINA_MAX_DIMS 16

/* Element types: lamina_fx.dtype.DTYPES[code]. */
enum lamina_dtype {
    LAMINA_BOOL, LAMINA_UINT8, LAMINA_UINT16, LAMINA_UINT32, LAMINA_UINT64, LAMINA_INT8, LAMINA_INT16, LAMINA_INT32,
    LAMINA_INT64, LAMINA_FLOAT16, LAMINA_BFLOAT16, LAMINA_FLOAT32, LAMINA_FLOAT64, LAMINA_COMPLEX64,
    LAMINA_COMPLEX128, LAMINA_FLOAT8_E4M3FN, LAMINA_FLOAT8_E5M2
};

enum lamina_device { LAMINA_CPU, LAMINA_CUDA, LAMINA_META };

enum lamina_flags {
    LAMINA_REQUIRES_GRAD = 1, /* a leaf that asks for gradients, or a result of such */
    LAMINA_IS_LEAF = 2,
    LAMINA_NO_DATA = 4, /* fake, traced or meta: `data` is NULL */
    LAMINA_HAS_GRAD = 8, /* `.grad` is not None */
    LAMINA_IS_VIEW = 16
};

typedef struct {
    PyObject_HEAD
    void *data;        /* address of element [0, ..., 0]; NULL with LAMINA_NO_DATA or no elements */
    int64_t *sizes;    /* ndim sizes, then ndim strides in elements; owned by the tensor */
    int64_t *strides;
    int64_t offset;    /* of `data` from the start of the storage, in elements */
    uint64_t *version; /* counter shared by all views of one storage; add 1 after writing; never NULL */
    int32_t ndim;
    int16_t dtype;
    int8_t device;
    int8_t device_index;
    uint32_t flags;
    uint32_t reserved;
} lamina_tensor;

typedef struct {
    int32_t version; /* LAMINA_ABI_VERSION */
    int32_t struct_size; /* sizeof(lamina_tensor) */
    PyTypeObject *base; /* instances of this type and its subtypes begin with lamina_tensor */
    /* New tensor with uninitialised memory and these strides (NULL: contiguous); a new reference, NULL on error. */
    PyObject *(*empty)(int ndim, const int64_t *sizes, const int64_t *strides, int dtype, int device, int device_index);
    /* New tensor over `data`, which lives inside the memory that `owner` keeps alive (it is referenced). */
    PyObject *(*from_memory)(void *data, int ndim, const int64_t *sizes, const int64_t *strides, int dtype,
                             int device, int device_index, PyObject *owner);
    /* The stream (a CUstream; NULL: the default one) on which this thread's work for a CUDA device is put. */
    void *(*stream)(int device_index);
    /* The gradient of a tensor of this type, or None: a borrowed reference. */
    PyObject *(*grad)(PyObject *tensor);
} lamina_abi;

#endif
