// The CUDA driver and cuBLAS, opened when first used: no header and no library of CUDA is needed to build or import this.
#ifndef LAMINA_CUDA_DRIVER_H
#define LAMINA_CUDA_DRIVER_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t DevicePtr; // CUdeviceptr
typedef void *Opaque;       // CUcontext, CUstream, CUmodule, CUfunction, CUgraph, CUgraphExec, cublasHandle_t

struct LaunchAttribute { // CUlaunchAttribute
    int id;
    char pad[4];
    union { unsigned dim[3]; int number; char bytes[64]; } value;
};
struct LaunchConfig { // CUlaunchConfig
    unsigned grid[3], block[3], shared;
    Opaque stream;
    LaunchAttribute *attributes;
    unsigned count;
};
struct KernelNode { // CUDA_KERNEL_NODE_PARAMS_v2
    Opaque function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
    Opaque kernel, context;
};
struct CopyPlace {
    size_t x = 0, y = 0, z = 0, level = 0;
    int kind = 2; // CU_MEMORYTYPE_DEVICE
    void *host = nullptr;
    DevicePtr device = 0;
    Opaque array = nullptr, reserved = nullptr;
    size_t pitch = 0, height = 0;
};
struct CopyNode { // CUDA_MEMCPY3D
    CopyPlace from, to;
    size_t bytes = 0, rows = 1, planes = 1;
};
struct alignas(64) TensorMap { // CUtensorMap
    uint64_t opaque[16];
};

enum {
    kOutOfMemory = 2, kNoDevice = 100, kInvalidImage = 200, kNoBinary = 209, kUnsupportedPtx = 222, kNotReady = 600,
    kAttributeShared = 8,     // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    kCooperative = 2,         // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    kClusterDimension = 4,    // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    kClusterSpread = 5,       // CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
};

struct Driver {
    int (*get_error_name)(int, const char **);
    int (*get_error_string)(int, const char **);
    int (*init)(unsigned);
    int (*driver_version)(int *);
    int (*device_count)(int *);
    int (*device_get)(int *, int);
    int (*device_name)(char *, int, int);
    int (*device_attribute)(int *, int, int);
    int (*primary_retain)(Opaque *, int);
    int (*context_current)(Opaque *);
    int (*context_set)(Opaque);
    int (*context_synchronize)(void);
    int (*module_load)(Opaque *, const void *);
    int (*module_unload)(Opaque);
    int (*module_function)(Opaque *, Opaque, const char *);
    int (*function_set)(Opaque, int, int);
    int (*launch)(const LaunchConfig *, Opaque, void **, void **);
    int (*mem_alloc)(DevicePtr *, size_t);
    int (*mem_free)(DevicePtr);
    int (*host_alloc)(void **, size_t, unsigned);
    int (*host_device_pointer)(DevicePtr *, void *, unsigned);
    int (*copy_in)(DevicePtr, const void *, size_t, Opaque);
    int (*copy_out)(void *, DevicePtr, size_t, Opaque);
    int (*copy)(DevicePtr, DevicePtr, size_t, Opaque);
    int (*fill)(DevicePtr, unsigned char, size_t, Opaque);
    int (*stream_create)(Opaque *, unsigned);
    int (*stream_synchronize)(Opaque);
    int (*event_create)(Opaque *, unsigned);
    int (*event_record)(Opaque, Opaque);
    int (*event_elapsed)(float *, Opaque, Opaque);
    int (*event_destroy)(Opaque);
    int (*is_capturing)(Opaque, int *);
    int (*begin_capture)(Opaque, int);
    int (*capture_info)(Opaque, int *, uint64_t *, Opaque *, const Opaque **, size_t *);
    int (*end_capture)(Opaque, Opaque *);
    int (*graph_instantiate)(Opaque *, Opaque, unsigned long long);
    int (*graph_launch)(Opaque, Opaque);
    int (*graph_destroy)(Opaque);
    int (*graph_exec_destroy)(Opaque);
    int (*graph_set_kernel)(Opaque, Opaque, const KernelNode *);
    int (*graph_set_copy)(Opaque, Opaque, const CopyNode *, Opaque);
    int (*encode_tiled)(TensorMap *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *, const unsigned *, int, int, int, int);
};

const Driver *lm_cuda(void);                    // opens the driver; NULL with an exception set (RuntimeError: what to install)
bool lm_cuda_forked(void);                      // in a child of a process that used the driver: nothing of it may be touched
bool lm_cuda_no_memory(long long bytes, const char *purpose); // false, with the front end's exception; bytes -1: unknown
bool lm_cuda_ok(int status, const char *what);  // false with an exception set
bool lm_cuda_enter(int device, Opaque *before); // makes the device's primary context current
void lm_cuda_leave(Opaque before);
bool lm_cuda_capturing(Opaque stream);          // is somebody noting this stream's work for a graph
PyObject *lm_cuda_device_info(PyObject *, PyObject *index); // (name, major, minor, multiprocessors, driver version)

// cuda_blas.cpp
struct Product {
    int dtype;     // lamina dtype of the operands
    int out_dtype;
    int64_t batch, m, n, k;
    int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row, c_col; // strides in elements
    bool accumulate, tf32;
};
enum { kBlasWorkspace = 32 << 20 };
PyObject *lm_set_cublas(PyObject *, PyObject *path); // where the library is
PyObject *lm_open_cublas(PyObject *, PyObject *device); // makes the device's handle
bool lm_cublas_begin(int device, Opaque stream, DevicePtr workspace);
bool lm_cublas_product(int device, const Product &product, DevicePtr a, DevicePtr b, DevicePtr c);

#endif
