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
    bool fine = lm_cuda_ok(cuda->function_set(kernel.function, kAttributeShared, kernel.shared), "reserving a kernel's shared memory");
    if (!fine) kernel.function = nullptr; // the next call tries again
    return fine;
}

bool load_constant(GpuPlan &plan, PyObject *array, Opaque stream) {
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS) < 0) return false;
    DevicePtr address = 0;
    bool fine = lm_gpu_alloc(&address, view.len ? (size_t)view.len : 1, " for a constant") &&
                (!view.len || lm_cuda_ok(lm_cuda()->copy_in(address, view.buf, (size_t)view.len, stream), "copying a constant"));
    PyBuffer_Release(&view);
    if (fine) plan.constants_at.push_back(address);
    else if (address) lm_cuda()->mem_free(address);
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

// The values of a launch's parameters. Of a descriptor it is the address: the parameter itself is the descriptor's map.
bool fill(GpuCall &call, LaunchStep &step) {
    for (size_t i = 0; i < step.arguments.size(); ++i) {
        const Argument &argument = step.arguments[i];
        switch (argument.kind) {
        case kPointer: step.values[i] = call.at(argument.place); break;
        case kInt32: case kInt64: step.values[i] = (uint64_t)call.slots[argument.value]; break;
        case kErrorWord: step.values[i] = call.plan.error_at; break;
        case kTable: step.values[i] = (*call.tables)[(size_t)argument.value].at; break;
        case kDescriptor:
            step.values[i] = call.at(argument.place);
            if (!describe(call, *call.plan.descriptors[(size_t)argument.value], argument)) return false;
            break;
        default: break;
        }
    }
    return true;
}

bool grid_of(const GpuCall &call, const LaunchStep &step, const GpuKernel &kernel, unsigned *grid, bool *empty) {
    *empty = false;
    for (int d = 0; d < 3; ++d) {
        int64_t programs = call.slots[step.grid[d]];
        if (programs <= 0) *empty = true;
        if (programs > (d ? 65535 : INT32_MAX)) {
            PyErr_Format(PyExc_RuntimeError, "%U: kernel %s would need %lld programs", call.plan.name, kernel.name.c_str(), (long long)programs);
            return false;
        }
        grid[d] = (unsigned)programs;
    }
    grid[0] *= (unsigned)kernel.clusters;
    return true;
}

unsigned attributes_of(const GpuKernel &kernel, LaunchAttribute *attributes) {
    unsigned count = 0;
    if (kernel.clusters > 1) {
        memset(attributes, 0, 2 * sizeof(*attributes));
        attributes[0].id = kClusterDimension;
        attributes[0].value.dim[0] = (unsigned)kernel.clusters, attributes[0].value.dim[1] = attributes[0].value.dim[2] = 1;
        attributes[1].id = kClusterSpread;
        attributes[1].value.number = 1;
        count = 2;
    }
    if (kernel.cooperative) {
        memset(attributes + count, 0, sizeof(*attributes));
        attributes[count].id = kCooperative;
        attributes[count++].value.number = 1;
    }
    return count;
}

bool launch_failed(const GpuCall &call, const GpuKernel &kernel, int status, const char *doing) {
    char what[512];
    snprintf(what, sizeof(what), "%.200s: %s kernel %.200s", PyUnicode_AsUTF8(call.plan.name), doing, kernel.name.c_str());
    return lm_cuda_ok(status, what);
}

// Notes the node that the launch just captured has become; null: there was none.
bool note_node(GpuCall &call, bool launched) {
    call.nodes->push_back(nullptr);
    return !launched || lm_gpu_node(call, &call.nodes->back());
}

bool launch(GpuCall &call, LaunchStep &step) {
    GpuKernel &kernel = call.plan.kernels[(size_t)step.kernel];
    LaunchConfig config;
    LaunchAttribute attributes[3];
    bool empty;
    if (!grid_of(call, step, kernel, config.grid, &empty)) return false;
    if (!empty) {
        if (!fill(call, step)) return false;
        config.block[0] = (unsigned)kernel.threads, config.block[1] = config.block[2] = 1;
        config.shared = (unsigned)kernel.shared;
        config.stream = call.stream;
        config.attributes = attributes;
        config.count = attributes_of(kernel, attributes);
        int status = lm_cuda()->launch(&config, kernel.function, step.pointers.data(), nullptr);
        if (status) return launch_failed(call, kernel, status, "launching");
    }
    return !call.nodes || note_node(call, !empty);
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

bool lm_gpu_node(const GpuCall &call, Opaque *node) {
    int state = 0;
    uint64_t id = 0;
    Opaque graph = nullptr;
    const Opaque *last = nullptr;
    size_t count = 0;
    if (!lm_cuda_ok(lm_cuda()->capture_info(call.stream, &state, &id, &graph, &last, &count), "capturing a CUDA graph")) return false;
    *node = count == 1 ? last[0] : nullptr;
    return true;
}

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

// A table for a graph that somebody captures: it stays as it is, and is written now, not when the graph runs.
static bool keep_table(GpuCall &call, TableCopy &copy, const std::vector<int64_t> &now) {
    const Driver *cuda = lm_cuda();
    size_t bytes = now.size() * sizeof(int64_t);
    Opaque stream = lm_gpu_side_stream(call.plan.device);
    if (!stream || !lm_gpu_alloc(&copy.at, bytes, " for a table of addresses")) return false;
    call.plan.noted_tables.push_back(copy.at);
    return lm_cuda_ok(cuda->copy_in(copy.at, now.data(), bytes, stream), "copying a table") &&
           lm_cuda_ok(cuda->stream_synchronize(stream), "copying a table");
}

bool lm_gpu_fill_tables(GpuCall &call) {
    const Driver *cuda = lm_cuda();
    for (size_t t = 0; t < call.plan.tables.size(); ++t) {
        const Table &table = call.plan.tables[t];
        TableCopy &copy = (*call.tables)[t];
        std::vector<int64_t> &now = call.table_values;
        now.resize(table.size());
        for (size_t i = 0; i < table.size(); ++i)
            now[i] = table[i].kind == kPointer ? (int64_t)call.at(table[i].place) : call.slots[table[i].value];
        if (call.noted) {
            if (!keep_table(call, copy, now)) return false;
            continue;
        }
        if (copy.at && now == copy.values && copy.stream == call.stream) continue;
        size_t bytes = now.size() * sizeof(int64_t);
        if (!copy.at && !lm_gpu_alloc(&copy.at, bytes, " for a table of addresses")) return false;
        if (!copy.values.empty() && copy.stream != call.stream && !lm_cuda_ok(cuda->stream_synchronize(copy.stream), "waiting for a table's readers")) return false;
        if (!lm_cuda_ok(cuda->copy_in(copy.at, now.data(), bytes, call.stream), "copying a table")) return false;
        copy.values.swap(now);
        copy.stream = call.stream;
    }
    return true;
}

// A captured launch with other parameters from the next launch of its graph on.
bool lm_gpu_patch(GpuCall &call, int number, Opaque exec, Opaque node, std::vector<uint64_t> *values) {
    LaunchStep &step = call.plan.launches[(size_t)number];
    const GpuKernel &kernel = call.plan.kernels[(size_t)step.kernel];
    if (!node) return true;
    if (!fill(call, step)) return false;
    if (step.values == *values) return true;
    KernelNode with = {kernel.function, {}, {(unsigned)kernel.threads, 1, 1}, (unsigned)kernel.shared, step.pointers.data(), nullptr, nullptr, nullptr};
    bool empty;
    if (!grid_of(call, step, kernel, with.grid, &empty)) return false;
    int status = lm_cuda()->graph_set_kernel(exec, node, &with);
    if (status) return launch_failed(call, kernel, status, "changing the parameters of");
    *values = step.values;
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
