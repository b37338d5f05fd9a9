// Runs the steps of a GPU program: kernels, products, copies and calls back into Python, on one stream.
#include "cuda_launcher.h"

#include <stdio.h>
#include <string.h>

namespace {

bool load_kernel(GpuPlan &plan, GpuKernel &kernel) {
    const Driver *cuda = lm_cuda();
    int status = cuda->module_load(&kernel.module, PyBytes_AS_STRING(kernel.image));
    if (status == kInvalidImage || status == kNoBinary || status == kUnsupportedPtx) {
        int version = 0;
        cuda->driver_version(&version);
        PyErr_Format(PyExc_RuntimeError,
                     "%U: the driver (CUDA %d.%d) does not take the machine code of kernel %s: it was made for another GPU or by a newer "
                     "assembler; update the NVIDIA driver, or name an older ptxas by TRITON_PTXAS_PATH and compile again",
                     plan.name, version / 1000, version % 1000 / 10, kernel.name.c_str());
        return false;
    }
    if (!lm_cuda_ok(status, "loading a kernel")) return false;
    if (!lm_cuda_ok(cuda->module_function(&kernel.function, kernel.module, kernel.name.c_str()), "finding a kernel")) return false;
    if (kernel.shared <= 48 << 10) return true;
    return lm_cuda_ok(cuda->function_set(kernel.function, kAttributeShared, kernel.shared), "reserving a kernel's shared memory");
}

bool load_constant(GpuPlan &plan, PyObject *array, Opaque stream) {
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS) < 0) return false;
    DevicePtr address = 0;
    bool fine = lm_cuda_ok(lm_cuda()->mem_alloc(&address, view.len ? (size_t)view.len : 1), "memory for a constant") &&
                (!view.len || lm_cuda_ok(lm_cuda()->copy_in(address, view.buf, (size_t)view.len, stream), "copying a constant"));
    PyBuffer_Release(&view);
    plan.constants_at.push_back(address);
    return fine;
}

// A descriptor is made anew when its memory or sizes are others than last time.
bool describe(GpuCall &call, Descriptor &d, const Argument &argument) {
    const Driver *cuda = lm_cuda();
    size_t rank = d.sizes.size();
    std::vector<uint64_t> now = {call.at(argument.place)};
    for (size_t i = rank; i-- > 0;) now.push_back((uint64_t)call.slots[d.sizes[i]]);
    for (size_t i = rank - 1; i-- > 0;) now.push_back((uint64_t)call.slots[d.strides[i]] * (uint64_t)d.item);
    if (now == d.made_for) return true;
    if (!cuda->encode_tiled) { PyErr_SetString(PyExc_RuntimeError, "the NVIDIA driver has no tensor descriptors; install a newer one"); return false; }
    unsigned block[5], steps[5] = {1, 1, 1, 1, 1};
    for (size_t i = 0; i < rank; ++i) block[i] = d.block[rank - 1 - i];
    // no interleaving, lines of 128 bytes in the second cache, zeros outside
    int status = cuda->encode_tiled(&d.map, d.type, (unsigned)rank, reinterpret_cast<void *>(now[0]), &now[1], &now[1 + rank], block, steps, 0, d.swizzle, 2, 0);
    if (!lm_cuda_ok(status, "describing a tensor")) return false;
    d.made_for = std::move(now);
    return true;
}

bool fill(GpuCall &call, LaunchStep &step) {
    for (size_t i = 0; i < step.arguments.size(); ++i) {
        const Argument &argument = step.arguments[i];
        switch (argument.kind) {
        case kPointer: step.values[i] = call.at(argument.place); break;
        case kInt32: case kInt64: step.values[i] = (uint64_t)call.slots[argument.value]; break;
        case kErrorWord: step.values[i] = call.plan.error_at; break;
        case kTable: step.values[i] = call.plan.tables[(size_t)argument.value].uploaded_to; break;
        case kDescriptor:
            if (!describe(call, *call.plan.descriptors[(size_t)argument.value], argument)) return false;
            break;
        default: break;
        }
    }
    return true;
}

bool launch(GpuCall &call, LaunchStep &step) {
    GpuKernel &kernel = call.plan.kernels[(size_t)step.kernel];
    LaunchConfig config;
    LaunchAttribute attributes[2];
    for (int d = 0; d < 3; ++d) {
        int64_t programs = call.slots[step.grid[d]];
        if (programs <= 0) return true;
        if (programs > (d ? 65535 : INT32_MAX)) { PyErr_Format(PyExc_RuntimeError, "kernel %s would need %lld programs", kernel.name.c_str(), (long long)programs); return false; }
        config.grid[d] = (unsigned)programs;
        config.block[d] = 1;
    }
    if (!fill(call, step)) return false;
    config.block[0] = (unsigned)kernel.threads;
    config.shared = (unsigned)kernel.shared;
    config.stream = call.stream;
    config.attributes = attributes;
    config.count = 0;
    if (kernel.clusters > 1) {
        config.grid[0] *= (unsigned)kernel.clusters;
        memset(attributes, 0, sizeof(attributes));
        attributes[0].id = kClusterDimension;
        attributes[0].value.dim[0] = (unsigned)kernel.clusters, attributes[0].value.dim[1] = attributes[0].value.dim[2] = 1;
        attributes[1].id = kClusterSpread;
        attributes[1].value.number = 1;
        config.count = 2;
    }
    int status = lm_cuda()->launch(&config, kernel.function, step.pointers.data(), nullptr);
    if (!status) return true;
    char what[256];
    snprintf(what, sizeof(what), "launching kernel %s", kernel.name.c_str());
    return lm_cuda_ok(status, what);
}

bool multiply(GpuCall &call, const ProductStep &step) {
    const int64_t *s = call.slots;
    Product p = {step.dtype, step.out_dtype, s[step.batch], s[step.m], s[step.n], s[step.k], s[step.strides[1]], s[step.strides[2]],
                 s[step.strides[3]], s[step.strides[5]], s[step.strides[6]], s[step.strides[7]], s[step.strides[9]], s[step.strides[10]],
                 s[step.strides[11]], step.accumulate, step.tf32};
    int64_t outer = s[step.outer], by_a = s[step.strides[0]], by_b = s[step.strides[4]], by_c = s[step.strides[8]];
    if (outer > 1 && p.batch == 1) { // one dimension of batch is enough
        p.batch = outer, p.a_batch = by_a, p.b_batch = by_b, p.c_batch = by_c, outer = 1;
    } else if (outer > 1 && by_a == p.batch * p.a_batch && by_b == p.batch * p.b_batch && by_c == p.batch * p.c_batch) {
        p.batch *= outer, outer = 1;
    } else if (outer > p.batch) { // fewer calls
        std::swap(outer, p.batch), std::swap(by_a, p.a_batch), std::swap(by_b, p.b_batch), std::swap(by_c, p.c_batch);
    }
    int item = lm_gpu_item_size(step.dtype), out_item = lm_gpu_item_size(step.out_dtype);
    for (int64_t o = 0; o < outer; ++o)
        if (!lm_cublas_product(call.plan.device, p, call.at(step.a) + (DevicePtr)(o * by_a * item), call.at(step.b) + (DevicePtr)(o * by_b * item),
                               call.at(step.c) + (DevicePtr)(o * by_c * out_item)))
            return false;
    return true;
}

bool call_back(GpuCall &call, const CallStep &step) {
    PyObject *addresses = PyTuple_New((Py_ssize_t)step.places.size()), *sizes = PyTuple_New((Py_ssize_t)call.plan.sizes.size());
    PyObject *result = nullptr;
    if (addresses && sizes) {
        for (size_t i = 0; i < step.places.size(); ++i) PyTuple_SET_ITEM(addresses, (Py_ssize_t)i, PyLong_FromUnsignedLongLong(call.at(step.places[i])));
        for (size_t i = 0; i < call.plan.sizes.size(); ++i) PyTuple_SET_ITEM(sizes, (Py_ssize_t)i, PyLong_FromLongLong(call.slots[i]));
        result = PyObject_CallFunction(call.plan.host_call, "iOOK", step.number, addresses, sizes, (unsigned long long)(uintptr_t)call.stream);
    }
    Py_XDECREF(addresses);
    Py_XDECREF(sizes);
    Py_XDECREF(result);
    return result != nullptr;
}

} // namespace

bool lm_gpu_load(GpuPlan &plan, Opaque stream) {
    if (plan.loaded) return true;
    for (GpuKernel &kernel : plan.kernels)
        if (!kernel.function && !load_kernel(plan, kernel)) return false;
    while (plan.constants_at.size() < plan.constants.size())
        if (!load_constant(plan, plan.constants[plan.constants_at.size()], stream)) return false;
    if (!plan.constants.empty() && !lm_cuda_ok(lm_cuda()->stream_synchronize(stream), "copying constants")) return false;
    if (plan.checks && !plan.error) {
        plan.error = lm_gpu_error_word(&plan.error_at);
        if (!plan.error) return false;
        lm_gpu_error_watch(&plan);
    }
    return plan.loaded = true;
}

bool lm_gpu_fill_tables(GpuCall &call) {
    const Driver *cuda = lm_cuda();
    for (Table &table : call.plan.tables) {
        for (size_t i = 0; i < table.cells.size(); ++i) {
            const Argument &cell = table.cells[i];
            table.values[i] = cell.kind == kPointer ? (int64_t)call.at(cell.place) : call.slots[cell.value];
        }
        if (table.uploaded_to && table.values == table.uploaded && table.stream == call.stream) continue;
        size_t bytes = table.values.size() * sizeof(int64_t);
        if (!table.uploaded_to && !lm_cuda_ok(cuda->mem_alloc(&table.uploaded_to, bytes), "memory for a table")) return false;
        if (!table.uploaded.empty() && table.stream != call.stream && !lm_cuda_ok(cuda->stream_synchronize(table.stream), "waiting for a table's readers")) return false;
        if (!lm_cuda_ok(cuda->copy_in(table.uploaded_to, table.values.data(), bytes, call.stream), "copying a table")) return false;
        table.uploaded = table.values;
        table.stream = call.stream;
    }
    return true;
}

bool lm_gpu_run(GpuCall &call, DevicePtr workspace) {
    GpuPlan &plan = call.plan;
    if (plan.blas_offset >= 0 && !lm_cublas_begin(plan.device, call.stream, workspace + (DevicePtr)call.slots[plan.blas_offset])) return false;
    for (const StepRef &step : plan.steps) {
        bool fine = !call.marks || lm_gpu_mark(call);
        if (!fine) return false;
        switch (step.kind) {
        case kLaunch: fine = launch(call, plan.launches[(size_t)step.index]); break;
        case kProduct: fine = multiply(call, plan.products[(size_t)step.index]); break;
        case kCall: fine = call_back(call, plan.calls[(size_t)step.index]); break;
        case kCopy: {
            const CopyStep &copy = plan.copies[(size_t)step.index];
            int64_t bytes = call.slots[copy.bytes];
            fine = bytes <= 0 || lm_cuda_ok(lm_cuda()->copy(call.at(copy.target), call.at(copy.source), (size_t)bytes, call.stream), "copying");
            break;
        }
        }
        if (!fine) return false;
    }
    return !call.marks || lm_gpu_mark(call);
}
