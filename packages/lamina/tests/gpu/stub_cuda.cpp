// A driver and a cuBLAS with no GPU behind them, for tests: memory is the host's, a launch is handed to a function of the test
// (or only counted), products are computed by loops. Built by `gpu_stub.py`.
#include <complex>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {
struct Config {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned count;
};
struct Step { // a launch, or something else that `work` does
    std::string name;
    Config config;
    std::vector<uint64_t> values;
    std::function<void()> work;
};
struct NodeParams {
    void *function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra, *kernel, *context;
};
typedef void (*on_launch)(const char *name, const unsigned *grid, unsigned threads, unsigned shared, const uint64_t *values, int count);
on_launch handler = nullptr;
int launches = 0, blas_handles = 0, devices = 1, refuse_images = 0, products = 0, failing = 0, patched = 0, redirected = 0, graph_launches = 0, cooperative = 0, short_of_memory = 0;
bool capturing = false;
void *captured_stream = nullptr, *blas_stream = nullptr;
typedef std::vector<Step *> Graph; // nodes are steps
struct Exec {
    std::vector<Step> steps;
    std::map<void *, size_t> of_node;
};
Graph *captured = nullptr;

void run(const Step &step) {
    if (step.work) return step.work();
    ++launches;
    if (handler) handler(step.name.c_str(), step.config.grid, step.config.block[0], step.config.shared, step.values.data(), (int)step.values.size());
}
int put(void *stream, const Step &step) {
    if (capturing && stream == captured_stream) captured->push_back(new Step(step));
    else run(step);
    return 0;
}
std::vector<uint64_t> values_of(void **parameters) {
    std::vector<uint64_t> values;
    for (int i = 0; parameters[i]; ++i) values.push_back(*(const uint64_t *)parameters[i]);
    return values;
}
struct CopyPlace { // of CUDA_MEMCPY3D
    size_t x, y, z, lod;
    int kind;
    void *host;
    uint64_t device;
    void *array, *reserved;
    size_t pitch, height;
};
struct CopyParams {
    CopyPlace from, to;
    size_t width, height, depth;
};
} // namespace

extern "C" {
void stub_on_launch(on_launch f) { handler = f; }
int stub_launches(void) { return launches; }
int stub_products(void) { return products; }
int stub_cooperative(void) { return cooperative; } // launches all of whose programs run at once
int stub_patched(void) { return patched; }
int stub_redirected(void) { return redirected; }
int stub_graph_launches(void) { return graph_launches; }
void stub_short_of_memory(int times) { short_of_memory = times; }
void stub_fail_launch(int status) { failing = status; } // the next one

int cuInit(unsigned) {
    if (getenv("STUB_DEVICES")) devices = atoi(getenv("STUB_DEVICES"));
    if (getenv("STUB_REFUSES")) refuse_images = 1;
    return 0;
}
int cuDriverGetVersion(int *v) { *v = getenv("STUB_VERSION") ? atoi(getenv("STUB_VERSION")) : 13000; return 0; }
int cuDeviceGetCount(int *c) { *c = devices; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return i < devices ? 0 : 101; }
int cuDeviceGetName(char *n, int l, int) { strncpy(n, "stub", (size_t)l); return 0; }
int cuDeviceGetAttribute(int *v, int a, int) { *v = a == 75 ? 9 : a == 16 ? 132 : 0; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(intptr_t)(0x10 + d); return 0; }
int cuCtxGetCurrent(void **c) { *c = (void *)0x10; return 0; }
int cuCtxSetCurrent(void *) { return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadData(void **m, const void *image) {
    if (refuse_images) return 209;
    *m = strdup((const char *)image);
    return 0;
}
int cuModuleUnload(void *m) { free(m); return 0; }
int cuModuleGetFunction(void **f, void *m, const char *) { *f = strdup((const char *)m); return 0; } // name@number
int cuFuncSetAttribute(void *, int, int) { return 0; }
int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **) {
    if (failing) {
        int status = failing;
        failing = 0;
        return status;
    }
    for (unsigned i = 0; i < config->count; ++i) {
        const int *attribute = (const int *)((const char *)config->attributes + 72 * i); // id, padding, value
        cooperative += attribute[0] == 2 && attribute[2] == 1;
    }
    return put(config->stream, {(const char *)function, *config, values_of(parameters), nullptr});
}
int cuMemAlloc_v2(uint64_t *p, size_t n) {
    if (short_of_memory) return --short_of_memory, 2;
    *p = (uint64_t)aligned_alloc(256, (n + 255) / 256 * 256);
    return 0;
}
int cuMemFree_v2(uint64_t p) { free((void *)p); return 0; }
int cuMemHostAlloc(void **p, size_t n, unsigned) { *p = calloc(1, n); return 0; }
int cuMemHostGetDevicePointer_v2(uint64_t *d, void *p, unsigned) { *d = (uint64_t)p; return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t d, const void *h, size_t n, void *s) { return put(s, {"", {}, {}, [=] { memcpy((void *)d, h, n); }}); }
int cuMemcpyDtoHAsync_v2(void *h, uint64_t d, size_t n, void *s) { return put(s, {"", {}, {}, [=] { memcpy(h, (void *)d, n); }}); }
int cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t f, size_t n, void *s) { return put(s, {"", {}, {}, [=] { memmove((void *)d, (void *)f, n); }}); }
int cuMemsetD8Async(uint64_t d, unsigned char c, size_t n, void *s) { return put(s, {"", {}, {}, [=] { memset((void *)d, c, n); }}); }
int cuStreamCreate(void **s, unsigned) { *s = (void *)0x300; return 0; }
int cuStreamSynchronize(void *) { return 0; }
int cuEventCreate(void **e, unsigned) { *e = malloc(1); return 0; }
int cuEventRecord(void *, void *) { return 0; }
int cuEventElapsedTime(float *t, void *, void *) { *t = 0.25f; return 0; }
int cuEventDestroy_v2(void *e) { free(e); return 0; }
int cuStreamIsCapturing(void *s, int *state) { *state = capturing && s == captured_stream; return 0; }
int cuStreamBeginCapture_v2(void *s, int) { capturing = true, captured_stream = s, captured = new Graph(); return 0; }
int cuStreamGetCaptureInfo_v2(void *, int *state, uint64_t *id, void **g, void *const **last, size_t *count) {
    *state = capturing, *id = 1, *g = captured, *count = captured->empty() ? 0 : 1;
    *last = (void *const *)&captured->back();
    return 0;
}
int cuStreamEndCapture(void *, void **g) { capturing = false; *g = captured; return 0; }
int cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long) {
    auto *exec = new Exec();
    for (Step *step : *(Graph *)g) exec->of_node[step] = exec->steps.size(), exec->steps.push_back(*step);
    *e = exec;
    return 0;
}
int cuGraphExecKernelNodeSetParams_v2(void *e, void *node, const NodeParams *p) {
    auto *exec = (Exec *)e;
    auto found = exec->of_node.find(node);
    if (found == exec->of_node.end()) return 1;
    Step &step = exec->steps[found->second];
    if (step.work || step.name != (const char *)p->function) return 1;
    step.values = values_of(p->parameters);
    memcpy(step.config.grid, p->grid, sizeof(p->grid));
    ++patched;
    return 0;
}
int cuGraphExecMemcpyNodeSetParams(void *e, void *node, const CopyParams *p, void *) {
    auto *exec = (Exec *)e;
    auto found = exec->of_node.find(node);
    if (found == exec->of_node.end() || !exec->steps[found->second].work || p->height != 1 || p->depth != 1 || p->from.kind != 2 || p->to.kind != 2) return 1;
    void *to = (void *)p->to.device, *from = (void *)p->from.device;
    exec->steps[found->second].work = [=, n = p->width] { memmove(to, from, n); };
    ++redirected;
    return 0;
}
int cuGraphLaunch(void *e, void *) {
    ++graph_launches;
    for (const Step &step : ((Exec *)e)->steps) run(step);
    return 0;
}
int cuGraphDestroy(void *g) {
    for (Step *step : *(Graph *)g) delete step;
    delete (Graph *)g;
    return 0;
}
int cuGraphExecDestroy(void *e) { delete (Exec *)e; return 0; }
int cuTensorMapEncodeTiled(void *map, int, unsigned, void *address, ...) { memcpy(map, &address, 8); return 0; }
int cuGetErrorName(int status, const char **s) { *s = status == 101 ? "CUDA_ERROR_INVALID_DEVICE" : "CUDA_ERROR_STUB"; return 0; }
int cuGetErrorString(int, const char **s) { *s = "an error of the stub"; return 0; }
int cuGetProcAddress_v2(const char *symbol, void **f, int, uint64_t, int *) {
    static void *self = [] {
        Dl_info info;
        dladdr((void *)cuInit, &info);
        return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }();
    *f = dlsym(self, symbol);
    if (!*f) *f = dlsym(self, (std::string(symbol) + "_v2").c_str());
    return *f ? 0 : 500;
}

int stub_handles(void) { return blas_handles; }
int cublasCreate_v2(void **h) { *h = (void *)0x600; ++blas_handles; return 0; }
int cublasSetStream_v2(void *, void *s) { blas_stream = s; return 0; }
int cublasSetWorkspace_v2(void *, void *, size_t) { return 0; }
int cublasSetMathMode(void *, int) { return 0; }
} // extern "C"

namespace {
template <typename T> void multiply(int ta, int tb, int m, int n, int k, T alpha, const T *a, int lda, const T *b, int ldb, T beta, T *c, int ldc) {
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) {
            T sum{};
            for (int l = 0; l < k; ++l) sum += (ta ? a[(long)i * lda + l] : a[(long)l * lda + i]) * (tb ? b[(long)l * ldb + j] : b[(long)j * ldb + l]);
            T &to = c[(long)j * ldc + i];
            to = alpha * sum + (beta == T{} ? T{} : beta * to);
        }
}
template <typename T>
void all(int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda, long long sa, const void *b, int ldb, long long sb,
        const void *beta, void *c, int ldc, long long sc, int batch) {
    for (int i = 0; i < batch; ++i)
        multiply<T>(ta, tb, m, n, k, *(const T *)alpha, (const T *)a + i * sa, lda, (const T *)b + i * sb, ldb, *(const T *)beta, (T *)c + i * sc, ldc);
}
} // namespace

extern "C" int cublasGemmStridedBatchedEx(void *, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at, int lda, long long sa,
                                          const void *b, int, int ldb, long long sb, const void *beta, void *c, int, int ldc, long long sc, int batch,
                                          int, int) {
    ++products;
    if (at != 0 && at != 1 && at != 4 && at != 5) return 15; // CUBLAS_STATUS_NOT_SUPPORTED
    if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return 7; // CUBLAS_STATUS_INVALID_VALUE
    return put(blas_stream, {"", {}, {}, [=] {
        switch (at) {
        case 0: return all<float>(ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch);
        case 1: return all<double>(ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch);
        case 4: return all<std::complex<float>>(ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch);
        case 5: return all<std::complex<double>>(ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch);
        }
    }});
}
