// Entry points of libcuda.so.1, its errors as exceptions, and the contexts of the devices.
#include "cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>

namespace {

constexpr int kDevices = 64;
constexpr int kOldestDriver = 12000; // cuGetProcAddress_v2, cluster launches, cubins that Triton's assembler makes
Driver driver;
bool opened = false;
bool forked = false; // from a process whose contexts and mapped memory are its own
Opaque contexts[kDevices];

struct Entry {
    const char *name;
    void *target;
    bool needed;
};

template <typename F> void *slot(F &function) { return static_cast<void *>(&function); }

int find_all(void *library) {
    typedef int (*get_proc)(const char *, void **, int, uint64_t, int *);
    auto find = reinterpret_cast<get_proc>(dlsym(library, "cuGetProcAddress_v2"));
    const Entry entries[] = {
        {"cuGetErrorName", slot(driver.get_error_name), true}, {"cuGetErrorString", slot(driver.get_error_string), true},
        {"cuInit", slot(driver.init), true}, {"cuDriverGetVersion", slot(driver.driver_version), true},
        {"cuDeviceGetCount", slot(driver.device_count), true}, {"cuDeviceGet", slot(driver.device_get), true},
        {"cuDeviceGetName", slot(driver.device_name), true}, {"cuDeviceGetAttribute", slot(driver.device_attribute), true},
        {"cuDevicePrimaryCtxRetain", slot(driver.primary_retain), true}, {"cuCtxGetCurrent", slot(driver.context_current), true},
        {"cuCtxSetCurrent", slot(driver.context_set), true}, {"cuCtxSynchronize", slot(driver.context_synchronize), true},
        {"cuModuleLoadData", slot(driver.module_load), true},
        {"cuModuleUnload", slot(driver.module_unload), true}, {"cuModuleGetFunction", slot(driver.module_function), true},
        {"cuFuncSetAttribute", slot(driver.function_set), true}, {"cuLaunchKernelEx", slot(driver.launch), true},
        {"cuMemAlloc", slot(driver.mem_alloc), true}, {"cuMemFree", slot(driver.mem_free), true},
        {"cuMemHostAlloc", slot(driver.host_alloc), true}, {"cuMemHostGetDevicePointer", slot(driver.host_device_pointer), true},
        {"cuMemcpyHtoDAsync", slot(driver.copy_in), true}, {"cuMemcpyDtoHAsync", slot(driver.copy_out), true},
        {"cuMemcpyDtoDAsync", slot(driver.copy), true}, {"cuMemsetD8Async", slot(driver.fill), true},
        {"cuStreamCreate", slot(driver.stream_create), true}, {"cuStreamSynchronize", slot(driver.stream_synchronize), true},
        {"cuEventCreate", slot(driver.event_create), true}, {"cuEventRecord", slot(driver.event_record), true},
        {"cuEventElapsedTime", slot(driver.event_elapsed), true}, {"cuEventDestroy", slot(driver.event_destroy), true},
        {"cuStreamIsCapturing", slot(driver.is_capturing), true}, {"cuStreamBeginCapture", slot(driver.begin_capture), true},
        {"cuStreamGetCaptureInfo", slot(driver.capture_info), true}, {"cuStreamEndCapture", slot(driver.end_capture), true},
        {"cuGraphInstantiateWithFlags", slot(driver.graph_instantiate), true}, {"cuGraphLaunch", slot(driver.graph_launch), true},
        {"cuGraphDestroy", slot(driver.graph_destroy), true}, {"cuGraphExecDestroy", slot(driver.graph_exec_destroy), true},
        {"cuGraphExecKernelNodeSetParams", slot(driver.graph_set_kernel), true},
        {"cuGraphExecMemcpyNodeSetParams", slot(driver.graph_set_copy), true},
        {"cuTensorMapEncodeTiled", slot(driver.encode_tiled), false},
    };
    for (const Entry &entry : entries) {
        void *found = nullptr;
        if (!find || find(entry.name, &found, kOldestDriver, 0, nullptr)) found = nullptr;
        if (!found && entry.needed) {
            PyErr_Format(PyExc_RuntimeError, "the NVIDIA driver has no %s: install version 580 or later", entry.name);
            return -1;
        }
        memcpy(entry.target, &found, sizeof(found));
    }
    return 0;
}

// Raises what users are told: "driver" where there is none, "forked", else the driver's refusal to begin.
int refuse(const char *wrong, int version, int count) {
    PyObject *module = PyImport_ImportModule("lamina_inductor.host.gpu");
    PyObject *done = module ? PyObject_CallMethod(module, "refuse_driver", "siii", wrong, version, count, kOldestDriver) : nullptr;
    Py_XDECREF(module);
    Py_XDECREF(done);
    return -1;
}

int open_driver(void) {
    const char *path = getenv("LAMINA_LIBCUDA");
    if (!path || !*path) path = "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return refuse("driver", 0, 0);
    int count = 0, version = 0;
    auto ask = reinterpret_cast<int (*)(int *)>(dlsym(library, "cuDriverGetVersion"));
    if (!ask) return refuse("driver", 0, 0);
    if (!ask(&version) && version < kOldestDriver) return refuse("", version, 0);
    if (find_all(library) < 0) return -1;
    int status = driver.init(0);
    if (!status) status = driver.device_count(&count);
    if (status && status != kNoDevice) {
        char wrong[64];
        snprintf(wrong, sizeof(wrong), "cuInit gave error %d", status);
        return refuse(wrong, version, 0);
    }
    if (!count) return refuse("", version, 0);
    opened = true;
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    return 0;
}

} // namespace

bool lm_cuda_forked(void) { return forked; }

const Driver *lm_cuda(void) {
    if (!forked) return opened || open_driver() == 0 ? &driver : nullptr;
    refuse("forked", 0, 0);
    return nullptr;
}

bool lm_cuda_no_memory(long long bytes, const char *purpose) {
    Opaque current = nullptr;
    int device = 0;
    driver.context_current(&current);
    for (int i = 0; i < kDevices; ++i)
        if (current && contexts[i] == current) device = i;
    PyObject *module = PyImport_ImportModule("lamina_inductor.host.gpu");
    PyObject *done = module ? PyObject_CallMethod(module, "refuse_memory", "iLs", device, bytes, purpose) : nullptr;
    Py_XDECREF(module);
    Py_XDECREF(done);
    return false;
}

bool lm_cuda_ok(int status, const char *what) {
    if (status == 0) return true;
    if (status == kOutOfMemory) {
        std::string purpose = std::string(" (") + what + ")";
        return lm_cuda_no_memory(-1, purpose.c_str());
    }
    const char *name = "CUDA_ERROR_UNKNOWN", *text = "";
    driver.get_error_name(status, &name);
    driver.get_error_string(status, &text);
    PyErr_Format(PyExc_RuntimeError, "%s failed: %s (%s)", what, name ? name : "unknown error", text ? text : "");
    return false;
}

bool lm_cuda_enter(int device, Opaque *before) {
    const Driver *cuda = lm_cuda();
    if (!cuda) return false;
    if (device < 0 || device >= kDevices) { PyErr_Format(PyExc_ValueError, "there is no device cuda:%d", device); return false; }
    if (!contexts[device]) {
        int handle = 0;
        if (!lm_cuda_ok(cuda->device_get(&handle, device), "finding the GPU")) return false;
        if (!lm_cuda_ok(cuda->primary_retain(&contexts[device], handle), "making the GPU's context")) return false;
    }
    Opaque current = nullptr;
    cuda->context_current(&current);
    *before = current == contexts[device] ? nullptr : current;
    return current == contexts[device] || lm_cuda_ok(cuda->context_set(contexts[device]), "choosing the GPU");
}

void lm_cuda_leave(Opaque before) {
    if (before) driver.context_set(before);
}

bool lm_cuda_capturing(Opaque stream) {
    int state = 0; // the default stream is never captured
    return stream && driver.is_capturing(stream, &state) == 0 && state != 0;
}

PyObject *lm_cuda_device_info(PyObject *, PyObject *index) {
    const Driver *cuda = lm_cuda();
    int number = (int)PyLong_AsLong(index), handle = 0, major = 0, minor = 0, units = 0, version = 0;
    char name[128] = "";
    if (!cuda || (number == -1 && PyErr_Occurred())) return nullptr;
    if (!lm_cuda_ok(cuda->device_get(&handle, number), "finding the GPU")) return nullptr;
    cuda->device_name(name, sizeof(name) - 1, handle);
    cuda->device_attribute(&major, 75, handle);
    cuda->device_attribute(&minor, 76, handle);
    cuda->device_attribute(&units, 16, handle);
    cuda->driver_version(&version);
    return Py_BuildValue("siiii", name, major, minor, units, version);
}
