// Matrix products by cuBLAS. A handle per device; it is used under the GIL only, with the caller's stream and workspace.
#include "cuda_driver.h"

#include <lamina/tensor_abi.h>

#include <dlfcn.h>
#include <string>

namespace {

std::string library_path;
void *library = nullptr;
Opaque handles[64];

struct Blas {
    int (*create)(Opaque *);
    int (*set_stream)(Opaque, Opaque);
    int (*set_workspace)(Opaque, void *, size_t);
    int (*set_mode)(Opaque, int);
    int (*product)(Opaque, int, int, int, int, int, const void *, const void *, int, int, long long, const void *, int, int, long long,
                   const void *, void *, int, int, long long, int, int, int);
} blas;

bool fail(const char *what, int status) {
    PyErr_Format(PyExc_RuntimeError, "cuBLAS: %s failed with status %d", what, status);
    return false;
}

template <typename F> bool find(const char *name, F *target) {
    *target = reinterpret_cast<F>(dlsym(library, name));
    if (!*target) PyErr_Format(PyExc_RuntimeError, "%s has no %s; install nvidia-cublas 12 or later", library_path.c_str(), name);
    return *target != nullptr;
}

bool open_blas(void) {
    if (library) return true;
    const char *path = library_path.empty() ? "libcublas.so" : library_path.c_str();
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        PyErr_Format(PyExc_RuntimeError, "matrix products on the GPU need cuBLAS, which cannot be loaded (%s); pip install nvidia-cublas, "
                     "or name the library by LAMINA_LIBCUBLAS", dlerror());
        return false;
    }
    bool found = find("cublasCreate_v2", &blas.create) && find("cublasSetStream_v2", &blas.set_stream) &&
                 find("cublasSetWorkspace_v2", &blas.set_workspace) && find("cublasSetMathMode", &blas.set_mode) &&
                 find("cublasGemmStridedBatchedEx", &blas.product);
    if (!found) library = nullptr;
    return found;
}

bool open_handle(int device) {
    if (!open_blas()) return false;
    if (handles[device]) return true;
    int status = blas.create(&handles[device]);
    if (status) { handles[device] = nullptr; return fail("creating a handle", status); }
    blas.set_mode(handles[device], 16); // sums of split products stay in single precision
    return true;
}

struct Type {
    int data, compute; // cudaDataType, cublasComputeType_t
};
bool type_of(int dtype, Type *type) {
    switch (dtype) {
    case LAMINA_FLOAT32: *type = {0, 68}; return true;
    case LAMINA_FLOAT64: *type = {1, 70}; return true;
    case LAMINA_FLOAT16: *type = {2, 68}; return true;
    case LAMINA_BFLOAT16: *type = {14, 68}; return true;
    case LAMINA_COMPLEX64: *type = {4, 68}; return true;
    case LAMINA_COMPLEX128: *type = {5, 70}; return true;
    }
    return false;
}

// How a row-major matrix looks to a column-major library: as it is (transposed, in its eyes) or turned.
bool layout(int64_t rows, int64_t cols, int64_t row, int64_t col, bool *turned, int64_t *ld) {
    if ((cols == 1 || col == 1) && (rows == 1 || row >= cols)) { *turned = false; *ld = rows == 1 ? (cols > 1 ? cols : 1) : row; return true; }
    if ((rows == 1 || row == 1) && (cols == 1 || col >= rows)) { *turned = true; *ld = cols == 1 ? (rows > 1 ? rows : 1) : col; return true; }
    return false;
}

} // namespace

PyObject *lm_set_cublas(PyObject *, PyObject *path) {
    const char *text = PyUnicode_AsUTF8(path);
    if (!text) return nullptr;
    if (!library) library_path = text;
    Py_RETURN_NONE;
}

PyObject *lm_open_cublas(PyObject *, PyObject *device) {
    long number = PyLong_AsLong(device);
    Opaque before = nullptr;
    if ((number == -1 && PyErr_Occurred()) || !lm_cuda_enter((int)number, &before)) return nullptr;
    bool fine = open_handle((int)number);
    lm_cuda_leave(before);
    if (!fine) return nullptr;
    Py_RETURN_NONE;
}

bool lm_cublas_begin(int device, Opaque stream, DevicePtr workspace) {
    if (!open_handle(device)) return false;
    int status = blas.set_stream(handles[device], stream);
    if (!status) status = blas.set_workspace(handles[device], reinterpret_cast<void *>(workspace), kBlasWorkspace);
    return status ? fail("choosing the stream", status) : true;
}

bool lm_cublas_product(int device, const Product &p, DevicePtr a, DevicePtr b, DevicePtr c) {
    if (p.batch <= 0 || p.m <= 0 || p.n <= 0) return true;
    static const double one64[2] = {1, 0}, zero64[2] = {0, 0};
    static const float one32[2] = {1, 0}, zero32[2] = {0, 0};
    Type in, out;
    bool ta, tb, tc;
    int64_t lda, ldb, ldc;
    if (!type_of(p.dtype, &in) || !type_of(p.out_dtype, &out)) { PyErr_Format(PyExc_RuntimeError, "cuBLAS has no products of dtype code %d", p.dtype); return false; }
    if (!layout(p.m, p.k, p.a_row, p.a_col, &ta, &lda) || !layout(p.k, p.n, p.b_row, p.b_col, &tb, &ldb) ||
        !layout(p.m, p.n, p.c_row, p.c_col, &tc, &ldc) || (lda | ldb | ldc | p.m | p.n | p.k) >= INT32_MAX) {
        PyErr_Format(PyExc_RuntimeError, "a matrix product has strides that cuBLAS does not take");
        return false;
    }
    lda = lda > 0 ? lda : 1, ldb = ldb > 0 ? ldb : 1;
    bool wide = in.compute == 70;
    const void *one = wide ? (const void *)one64 : one32, *zero = wide ? (const void *)zero64 : zero32;
    int compute = p.tf32 && p.dtype == LAMINA_FLOAT32 ? 77 : in.compute;
    const void *beta = p.accumulate ? one : zero;
    // c = a b row by row is c' = b' a' column by column; a result laid out by columns is c = a b as the library has it.
    int status = tc ? blas.product(handles[device], ta ? 0 : 1, tb ? 0 : 1, (int)p.m, (int)p.n, (int)p.k, one, reinterpret_cast<void *>(a), in.data,
                                   (int)lda, p.a_batch, reinterpret_cast<void *>(b), in.data, (int)ldb, p.b_batch, beta,
                                   reinterpret_cast<void *>(c), out.data, (int)ldc, p.c_batch, (int)p.batch, compute, -1)
                    : blas.product(handles[device], tb ? 1 : 0, ta ? 1 : 0, (int)p.n, (int)p.m, (int)p.k, one, reinterpret_cast<void *>(b), in.data,
                                   (int)ldb, p.b_batch, reinterpret_cast<void *>(a), in.data, (int)lda, p.a_batch, beta,
                                   reinterpret_cast<void *>(c), out.data, (int)ldc, p.c_batch, (int)p.batch, compute, -1);
    return status ? fail("a matrix product", status) : true;
}
