// Reads, checks and places the inputs of a GPU program.
#include "cuda_launcher.h"

#include <string.h>

namespace {

constexpr int kKnown = 8;
struct KnownType {
    PyTypeObject *type;
    const lamina_abi *abi;
} known[kKnown];
int known_count = 0;
const lamina_abi *default_abi = nullptr;

PyObject *slot_tuple(const GpuCall &call, const std::vector<int> &slots) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)slots.size());
    for (size_t i = 0; tuple && i < slots.size(); ++i) PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, PyLong_FromLongLong(call.slots[slots[i]]));
    return tuple;
}

// Another tensor for an input that does not fit, made by Python; or the exception that says why there is none.
bool adapt(GpuCall &call, size_t i) {
    const GpuInput &input = call.plan.inputs[i];
    PyObject *sizes = call.slots ? slot_tuple(call, input.sizes) : Py_NewRef(Py_None);
    PyObject *strides = call.slots ? slot_tuple(call, input.strides) : Py_NewRef(Py_None);
    PyObject *made = sizes && strides ? PyObject_CallFunction(call.plan.adapt, "nOOO", (Py_ssize_t)i, call.objects[i], sizes, strides) : nullptr;
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    if (!made) return false;
    if (call.owned[i]) Py_DECREF(call.objects[i]);
    call.objects[i] = made;
    call.owned[i] = 1;
    const lamina_abi *abi = lm_gpu_abi(Py_TYPE(made));
    call.tensors[i] = abi ? reinterpret_cast<lamina_tensor *>(made) : nullptr;
    return true;
}

bool right_place(const GpuPlan &plan, const GpuInput &input, const lamina_tensor *tensor) {
    if (tensor->flags & LAMINA_NO_DATA) return false;
    if (input.on_host) return tensor->device == LAMINA_CPU;
    return tensor->device == LAMINA_CUDA && tensor->device_index == plan.device;
}

bool fits(const GpuCall &call, const GpuInput &input, const lamina_tensor *tensor) {
    if (!tensor || tensor->dtype != input.dtype || (size_t)tensor->ndim != input.sizes.size() || !right_place(call.plan, input, tensor)) return false;
    bool empty = false, same = true;
    for (int d = 0; d < tensor->ndim; ++d) {
        int64_t size = call.slots[input.sizes[(size_t)d]];
        if (tensor->sizes[d] != size) return false;
        if (size == 0) empty = true;
        if (size > 1 && tensor->strides[d] != call.slots[input.strides[(size_t)d]]) same = false;
    }
    return same || empty;
}

// Bytes from the first element to the last.
int64_t extent(const lamina_tensor *tensor) {
    int64_t elements = 1;
    for (int d = 0; d < tensor->ndim; ++d) {
        if (tensor->sizes[d] == 0) return 0;
        elements += (tensor->sizes[d] - 1) * tensor->strides[d];
    }
    return elements * lm_gpu_item_size(tensor->dtype);
}

bool copy_number(GpuCall &call, size_t i, DevicePtr to) {
    double value = PyFloat_AsDouble(call.objects[i]);
    if (value == -1.0 && PyErr_Occurred()) return false;
    return lm_cuda_ok(lm_cuda()->copy_in(to, &value, sizeof(value), call.stream), "copying a number to the GPU");
}

} // namespace

int lm_gpu_item_size(int dtype) {
    static const int sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1};
    return sizes[dtype];
}

const lamina_abi *lm_gpu_abi(PyTypeObject *type) {
    for (int i = 0; i < known_count; ++i)
        if (known[i].type == type) return known[i].abi;
    PyObject *capsule = PyObject_GetAttrString(reinterpret_cast<PyObject *>(type), "__lamina_abi__");
    if (!capsule) { PyErr_Clear(); return nullptr; }
    auto *abi = static_cast<const lamina_abi *>(PyCapsule_GetPointer(capsule, LAMINA_ABI_CAPSULE));
    Py_DECREF(capsule);
    if (!abi) { PyErr_Clear(); return nullptr; }
    if (abi->version != LAMINA_ABI_VERSION || abi->struct_size != (int)sizeof(lamina_tensor)) return nullptr;
    if (!default_abi) default_abi = abi;
    if (known_count < kKnown) {
        Py_INCREF(type);
        known[known_count++] = {type, abi};
    }
    return abi;
}

void lm_gpu_set_default(const lamina_abi *abi) { default_abi = abi; }
const lamina_abi *lm_gpu_default(void) { return default_abi; }

bool lm_gpu_read_inputs(GpuCall &call, PyObject *const *arguments) {
    size_t count = call.plan.inputs.size();
    call.objects.assign(arguments, arguments + count);
    call.owned.assign(count, 0);
    call.tensors.assign(count, nullptr);
    call.addresses.reserve(count + call.plan.outputs.size() + call.plan.constants.size() + call.plan.workspace_offsets.size());
    call.addresses.assign(count, 0);
    for (size_t i = 0; i < count; ++i) {
        if (call.plan.inputs[i].dtype < 0) continue;
        const lamina_abi *abi = lm_gpu_abi(Py_TYPE(arguments[i]));
        if (abi) {
            call.tensors[i] = reinterpret_cast<lamina_tensor *>(arguments[i]);
            if (!call.abi || call.tensors[i]->device == LAMINA_CUDA) call.abi = abi;
        } else if (!call.plan.inputs[i].on_host || !PyFloat_Check(arguments[i])) {
            if (!adapt(call, i)) return false;
            if (!call.abi && call.tensors[i]) call.abi = lm_gpu_abi(Py_TYPE(call.objects[i]));
        }
    }
    if (!call.abi) call.abi = default_abi;
    if (!call.abi || !call.abi->stream) {
        PyErr_Format(PyExc_RuntimeError, "%U: no front end's tensors with GPU memory are known; call it with tensors", call.plan.name);
        return false;
    }
    return true;
}

bool lm_gpu_find_sizes(GpuCall &call) {
    const GpuPlan &plan = call.plan;
    call.slots = plan.slots.data();
    if (plan.sizes.empty()) return true;
    call.own_slots = plan.slots;
    for (size_t i = 0; i < plan.sizes.size(); ++i) {
        const GpuSize &source = plan.sizes[i];
        const lamina_tensor *tensor = call.tensors[(size_t)source.input];
        if (source.dim < 0) {
            call.own_slots[i] = PyLong_AsLongLong(call.objects[(size_t)source.input]);
            if (call.own_slots[i] == -1 && PyErr_Occurred()) return false;
        } else if (tensor && source.dim < tensor->ndim) {
            call.own_slots[i] = tensor->sizes[source.dim];
        } else {
            PyErr_Format(PyExc_RuntimeError, "%U: input %zd has no dimension %d", plan.name, source.input, source.dim);
            return false;
        }
    }
    lm_gpu_evaluate(plan, call.own_slots.data());
    call.slots = call.own_slots.data();
    return true;
}

bool lm_gpu_check_inputs(GpuCall &call) {
    for (size_t i = 0; i < call.plan.inputs.size(); ++i) {
        const GpuInput &input = call.plan.inputs[i];
        if (input.dtype < 0 || (input.on_host && !call.tensors[i] && PyFloat_Check(call.objects[i]))) continue;
        if (!fits(call, input, call.tensors[i])) {
            if (!adapt(call, i)) return false;
            if (!fits(call, input, call.tensors[i])) {
                PyErr_Format(PyExc_RuntimeError, "%U: input %zd could not be adapted (got %R)", call.plan.name, (Py_ssize_t)i, call.objects[i]);
                return false;
            }
        }
        call.addresses[i] = reinterpret_cast<DevicePtr>(call.tensors[i]->data);
    }
    return true;
}

bool lm_gpu_stage_inputs(GpuCall &call, DevicePtr workspace) {
    const Driver *cuda = lm_cuda();
    for (size_t i = 0; i < call.plan.inputs.size(); ++i) {
        const GpuInput &input = call.plan.inputs[i];
        if (input.dtype < 0) continue;
        bool aligned = call.addresses[i] % 16 == 0;
        if (!input.on_host && aligned) continue;
        DevicePtr to = 0;
        if (input.on_host) {
            to = workspace + (DevicePtr)call.slots[input.staged];
        } else { // kernels read and write memory that begins at a multiple of 16: they get a copy
            PyObject *memory = lm_gpu_new_bytes(call.abi, call.plan.device, extent(call.tensors[i]) + 16, &to);
            if (!memory) return false;
            call.temporaries.push_back(memory);
        }
        if (!call.tensors[i]) {
            if (!copy_number(call, i, to)) return false;
        } else {
            int64_t bytes = extent(call.tensors[i]);
            int status = !bytes ? 0 : input.on_host ? cuda->copy_in(to, call.tensors[i]->data, (size_t)bytes, call.stream)
                                                    : cuda->copy(to, call.addresses[i], (size_t)bytes, call.stream);
            if (!lm_cuda_ok(status, "copying an input")) return false;
        }
        call.addresses[i] = to;
    }
    return true;
}

bool lm_gpu_return_inputs(GpuCall &call) {
    const Driver *cuda = lm_cuda();
    bool waits = false;
    for (size_t i = 0; i < call.plan.inputs.size(); ++i) {
        const GpuInput &input = call.plan.inputs[i];
        lamina_tensor *tensor = call.tensors[i];
        if (input.dtype < 0 || !input.written || !tensor) continue;
        ++*tensor->version;
        auto home = reinterpret_cast<DevicePtr>(tensor->data);
        if (call.addresses[i] == home) continue;
        int64_t bytes = extent(tensor);
        int status = !bytes ? 0 : input.on_host ? cuda->copy_out(tensor->data, call.addresses[i], (size_t)bytes, call.stream)
                                                : cuda->copy(home, call.addresses[i], (size_t)bytes, call.stream);
        if (!lm_cuda_ok(status, "copying a written input back")) return false;
        waits |= input.on_host;
    }
    return !waits || lm_cuda_ok(cuda->stream_synchronize(call.stream), "copying a written input back");
}
