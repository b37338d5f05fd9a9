// Error words: kernels that find a bad index write it, with the number of its check, to memory of the host, which is read before
// each call and when the caller waits for the device. Kernels went on with index 0, so the context lives.
#include "cuda_launcher.h"

#include <algorithm>

namespace {

constexpr int kWords = 512; // of a page
int64_t *page = nullptr;
DevicePtr page_at = 0;
int used = kWords;
std::vector<GpuPlan *> watched;

} // namespace

int64_t *lm_gpu_error_word(DevicePtr *device_address) {
    if (used == kWords) {
        void *memory = nullptr;
        // CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP; pages live as long as the process
        if (!lm_cuda_ok(lm_cuda()->host_alloc(&memory, kWords * sizeof(int64_t), 3), "memory for errors")) return nullptr;
        page = static_cast<int64_t *>(memory);
        if (!lm_cuda_ok(lm_cuda()->host_device_pointer(&page_at, memory, 0), "memory for errors")) return nullptr;
        std::fill(page, page + kWords, 0);
        used = 0;
    }
    *device_address = page_at + (DevicePtr)used * sizeof(int64_t);
    return page + used++;
}

bool lm_gpu_error_check(GpuPlan &plan) {
    if (!plan.error || lm_cuda_forked()) return true; // the word is memory that a child does not have
    int64_t word = *static_cast<volatile int64_t *>(plan.error);
    if (!word) return true;
    *plan.error = 0;
    PyObject *nothing = PyObject_CallFunction(plan.fail, "L", (long long)word);
    if (nothing) PyErr_Format(PyExc_RuntimeError, "%U failed with error word %lld", plan.name, (long long)word);
    Py_XDECREF(nothing);
    return false;
}

void lm_gpu_error_watch(GpuPlan *plan) { watched.push_back(plan); }

void lm_gpu_error_forget(GpuPlan *plan) { watched.erase(std::remove(watched.begin(), watched.end(), plan), watched.end()); }

PyObject *lm_gpu_check_errors(PyObject *, PyObject *) {
    for (GpuPlan *plan : watched)
        if (!lm_gpu_error_check(*plan)) return nullptr;
    Py_RETURN_NONE;
}
