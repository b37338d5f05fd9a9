// Workspaces of GPU programs: one block for each device and stream. What runs on a stream runs in order, so all its programs may
// have the same block. The memory is a tensor of the front end, so it counts, and is pooled, like any other.
#include "cuda_launcher.h"

namespace {

struct Held {
    PyObject *tensor;
    DevicePtr address;
    int64_t bytes;
    int device;
    Opaque stream;
    bool taken;
};
std::vector<Held> held;

} // namespace

PyObject *lm_gpu_new_bytes(const lamina_abi *abi, int device, int64_t bytes, DevicePtr *address) {
    PyObject *tensor = abi->empty(1, &bytes, nullptr, LAMINA_UINT8, LAMINA_CUDA, device);
    if (tensor) *address = reinterpret_cast<DevicePtr>(reinterpret_cast<lamina_tensor *>(tensor)->data);
    return tensor;
}

// Where there is too little, the front end is asked to give back what its pool keeps.
bool lm_gpu_alloc(DevicePtr *address, size_t bytes, const char *purpose) {
    const Driver *cuda = lm_cuda();
    int status = cuda->mem_alloc(address, bytes);
    if (status == kOutOfMemory) {
        PyObject *module = PyImport_ImportModule("lamina_inductor.host.gpu");
        PyObject *done = module ? PyObject_CallMethod(module, "give_back", nullptr) : nullptr;
        Py_XDECREF(module);
        if (!done) return false;
        Py_DECREF(done);
        status = cuda->mem_alloc(address, bytes);
        if (status == kOutOfMemory) return lm_cuda_no_memory((long long)bytes, purpose);
    }
    return lm_cuda_ok(status, "taking memory");
}

bool lm_gpu_take(const lamina_abi *abi, int device, Opaque stream, int64_t bytes, bool own, GpuBlock *block) {
    if (bytes <= 0) return true;
    int found = -1;
    for (size_t i = 0; i < held.size(); ++i)
        if (held[i].device == device && held[i].stream == stream) found = (int)i;
    if (own || (found >= 0 && held[(size_t)found].taken)) { // taken: a host call of a running program runs another one
        block->tensor = lm_gpu_new_bytes(abi, device, bytes, &block->address);
        return block->tensor != nullptr;
    }
    if (found < 0) {
        found = (int)held.size();
        held.push_back({nullptr, 0, 0, device, stream, false});
    }
    if (held[(size_t)found].bytes < bytes) {
        Py_CLEAR(held[(size_t)found].tensor); // given back first: the new one may take its place
        held[(size_t)found].bytes = 0;
        DevicePtr address = 0;
        PyObject *tensor = lm_gpu_new_bytes(abi, device, bytes, &address);
        if (!tensor) return false;
        held[(size_t)found].tensor = tensor, held[(size_t)found].address = address, held[(size_t)found].bytes = bytes;
    }
    held[(size_t)found].taken = true;
    block->slot = found;
    block->address = held[(size_t)found].address;
    return true;
}

void lm_gpu_give(GpuBlock *block) {
    if (block->slot >= 0) held[(size_t)block->slot].taken = false;
    Py_CLEAR(block->tensor);
    block->slot = -1;
}

PyObject *lm_gpu_release(PyObject *, PyObject *) {
    int64_t freed = 0;
    for (Held &block : held)
        if (!block.taken) {
            freed += block.bytes;
            block.bytes = 0;
            Py_CLEAR(block.tensor);
        }
    return PyLong_FromLongLong(freed);
}
