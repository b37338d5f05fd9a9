/* What the files of this extension share: the objects' layouts and each file's entry points. */
#ifndef LAMINA_TENSOR_EXTENSION_H
#define LAMINA_TENSOR_EXTENSION_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL lamina_tensor_array_api
#ifndef LAMINA_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <lamina/tensor_abi.h>

#define INLINE_DIMS 4

/* Private bits of lamina_tensor.flags. */
#define FLAG_NO_GRAD_VIEW (1u << 16) /* a view made while gradients were off: has no part in its base's history */
#define FLAG_INFERENCE (1u << 17)    /* made in inference mode */
#define FLAG_RETAIN_GRAD (1u << 18)  /* a result whose gradient is kept */

/* Memory shared by tensors. Kinds without data subclass it in Python. */
typedef struct {
    PyObject_HEAD
    uint64_t version;
    PyObject *owner; /* keeps `start` alive (an ndarray); NULL without data */
    char *start;
    int64_t nbytes;
    int64_t counted; /* bytes of it in the account of CUDA device `device_index` */
    int device_index;
    void *kind; /* of an array that may be kept when the storage goes (kept.c); NULL: it may not */
    PyObject *weakrefs;
} StorageObject;

typedef struct {
    lamina_tensor h;
    PyObject *array;   /* ndarray (on a GPU: the device library's array) over the elements; NULL with LAMINA_NO_DATA */
    PyObject *storage; /* StorageObject */
    PyObject *counter; /* StorageObject whose version this tensor counts; NULL: the storage's */
    PyObject *spec;    /* TensorSpec, made when asked for */
    PyObject *grad_fn;
    PyObject *grad;
    PyObject *chain; /* tuple of view steps from the storage's root; NULL: none */
    PyObject *base;  /* the tensor whose view this is */
    PyObject *hooks;
    PyObject *cache; /* a traced view's node and the generation it is of */
    int64_t output_nr;
    uint64_t grad_version; /* version of the storage when grad_fn was set (views) */
    int64_t dims[2 * INLINE_DIMS];
} TensorObject;

/* Set once by init(): what Python gives to C. */
typedef struct {
    PyTypeObject *tensor_type; /* the Python class that results get */
    PyTypeObject *size_type;   /* a subclass of tuple */
    PyObject *dtypes;          /* tuple: DType by code */
    PyObject *devices;         /* dict: (type code, index) -> Device */
    PyObject *cpu;
    PyObject *modes; /* the thread-local with `stack` */
    PyObject *make_spec; /* TensorSpec(shape, dtype, strides, device) */
    PyObject *errstate_var, *errstate_value;
    PyObject *slow;   /* slow(operator, args, kwargs) */
    PyObject *record; /* record(operator, args, kwargs, out) */
} Registered;

extern Registered registered;
extern PyTypeObject StorageBase_Type, NumpyStorage_Type, CudaStorage_Type, TensorBase_Type, FastOp_Type, Block_Type;
extern __thread int grad_enabled, inference_enabled;
extern const int8_t dtype_itemsize[];

int dtype_code(PyArray_Descr *descr); /* -1 with an exception when there is no counterpart */
int register_special_dtypes(PyObject *descrs);
PyArray_Descr *descr_of_code(int code); /* new reference */
PyObject *wrap_array(PyTypeObject *type, PyObject *array); /* new tensor over an ndarray or NumPy scalar */
PyObject *wrap_view(PyObject *parent, PyObject *array);
PyObject *restride(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *alias_tensor(PyTypeObject *type, TensorObject *source, int fresh_counter);
PyObject *no_data_tensor(PyObject *storage, PyObject *spec, int dtype, int device, int device_index);
PyObject *abi_capsule(void);
int fill_from_array(TensorObject *t, PyArrayObject *array);
int reserve_dims(TensorObject *t, int ndim);
uint64_t *alloc_init(void);
int requires_grad(TensorObject *t);
PyObject *scan(PyObject *module, PyObject *args);
PyObject *collect(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *write_ufunc(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *to_arrays(PyObject *module, PyObject *args);
PyObject *set_errstate_ignored(void); /* token, or NULL */
void reset_errstate(PyObject *token);

TensorObject *new_tensor(PyTypeObject *type);
int is_device_array(PyObject *value);
PyObject *cuda_device(int index);
PyObject *device_kernel(PyObject *ufunc);
PyObject *wrap_device_array(PyTypeObject *type, PyObject *value, int code);
PyObject *wrap_device_view(TensorObject *parent, PyObject *value, int code);
void row_major(TensorObject *t); /* the strides of an empty tensor of its own */
PyObject *device_empty(int ndim, const int64_t *sizes, const int64_t *strides, int dtype, int index);
PyObject *device_from_memory(void *data, int ndim, const int64_t *sizes, const int64_t *strides, int dtype, int index,
                             PyObject *owner);
void *device_stream(int index);
void count_memory(int index, int64_t bytes);
PyObject *memory_account(PyObject *module, PyObject *args);
PyObject *take_kept(int ndim, const int64_t *sizes, int dtype, int index, void **data, void **kind);
void keep_array(StorageObject *storage);
PyObject *pause_kept(PyObject *module, PyObject *flag);
PyObject *drop_kept(PyObject *module, PyObject *unused);
PyObject *starts_inside(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *use_device(PyObject *module, PyObject *args);
PyObject *leave_device(PyObject *module, PyObject *unused);
PyObject *set_stream(PyObject *module, PyObject *args);
PyObject *wrap_device(PyObject *module, PyObject *args);

/* Has it an ndarray: a tensor with data in the host's memory. */
static inline int on_host(TensorObject *t) { return t->array && t->h.device == LAMINA_CPU; }
static inline int tensor_check(PyObject *o) { return PyObject_TypeCheck(o, &TensorBase_Type); }
#endif
