// `Program`: a callable over a GPU program. A call reads and checks the inputs, allocates the outputs through the front end, puts
// all steps on the front end's current stream, with no Python between them, and hands back the results.
#include "cuda_launcher.h"

#include <structmember.h>

#include <new>

GpuCall::~GpuCall() {
    for (size_t i = 0; i < owned.size(); ++i)
        if (owned[i]) Py_DECREF(objects[i]);
    for (PyObject *output : outputs) Py_XDECREF(output);
    for (PyObject *temporary : temporaries) Py_DECREF(temporary);
}

namespace {

bool is_contiguous(const int64_t *sizes, const int64_t *strides, size_t ndim) {
    int64_t step = 1;
    for (size_t i = ndim; i-- > 0;) {
        if (sizes[i] != 1 && strides[i] != step) return false;
        step *= sizes[i] > 1 ? sizes[i] : 1;
    }
    return true;
}

bool return_outputs(GpuCall &call) {
    bool waits = false;
    for (size_t i = 0; i < call.plan.outputs.size(); ++i) {
        if (!call.plan.outputs[i].on_host) continue;
        const GpuOutput &output = call.plan.outputs[i];
        int64_t sizes[LAMINA_MAX_DIMS], strides[LAMINA_MAX_DIMS], elements = 1;
        int ndim = (int)output.sizes.size();
        bool nothing = false;
        for (int d = 0; d < ndim; ++d) {
            sizes[d] = call.slots[output.sizes[(size_t)d]], strides[d] = call.slots[output.strides[(size_t)d]];
            elements += (sizes[d] - 1) * strides[d];
            if (!sizes[d]) nothing = true;
        }
        PyObject *home = call.abi->empty(ndim, sizes, strides, output.dtype, LAMINA_CPU, 0);
        if (!home) return false;
        auto from = reinterpret_cast<DevicePtr>(reinterpret_cast<lamina_tensor *>(call.outputs[i])->data);
        size_t bytes = nothing ? 0 : (size_t)elements * (size_t)lm_gpu_item_size(output.dtype);
        int status = bytes ? lm_cuda()->copy_out(reinterpret_cast<lamina_tensor *>(home)->data, from, bytes, call.stream) : 0;
        Py_DECREF(call.outputs[i]);
        call.outputs[i] = home;
        if (!lm_cuda_ok(status, "copying a result to the host")) return false;
        waits = true;
    }
    return !waits || lm_cuda_ok(lm_cuda()->stream_synchronize(call.stream), "waiting for a result");
}

bool run(GpuProgram *program, GpuCall &call) {
    GpuPlan &plan = call.plan;
    GpuBlock block;
    // Somebody captures this stream: what the program uses must stay as it is for as long as that graph lives.
    call.noted = lm_cuda_capturing(call.stream);
    std::vector<TableCopy> noted_tables(call.noted ? plan.tables.size() : 0);
    if (call.noted) call.tables = &noted_tables;
    if (!lm_gpu_make_outputs(call) || !lm_gpu_take(call.abi, plan.device, call.stream, call.slots[plan.workspace_bytes], call.noted, &block)) return false;
    call.addresses.insert(call.addresses.end(), plan.constants_at.begin(), plan.constants_at.end());
    for (int offset : plan.workspace_offsets) call.addresses.push_back(block.address + (DevicePtr)call.slots[offset]);
    bool graph = plan.captured && plan.warm && !call.noted && !call.marks && !block.tensor;
    bool fine = lm_gpu_stage_inputs(call, block.address) &&
                (graph ? lm_gpu_replay(program, call, block.address) : lm_gpu_fill_tables(call) && lm_gpu_run(call, block.address));
    plan.warm |= fine; // the first call loads kernels and libraries, which a capture must not see
    fine = lm_gpu_return_inputs(call) && fine;
    lm_gpu_give(&block);
    return fine && return_outputs(call);
}

PyObject *call_inside(GpuProgram *program, GpuCall &call) {
    if (!lm_gpu_load(call.plan, call.stream)) return nullptr;
    bool done = run(program, call);
    if (call.marks) return lm_gpu_times(call, done);
    return done ? lm_gpu_finish(call) : nullptr;
}

// The program for sizes that need wider indices.
PyObject *wide_program(GpuPlan &plan) {
    if (!plan.wide) plan.wide = PyObject_CallNoArgs(plan.wider);
    return plan.wide;
}

PyObject *call_with(GpuProgram *program, PyObject *const *arguments, Py_ssize_t given, std::vector<Opaque> *marks) {
    GpuPlan &plan = *program->plan;
    if (given != (Py_ssize_t)plan.inputs.size())
        return PyErr_Format(PyExc_TypeError, "%U takes %zd inputs, got %zd", plan.name, (Py_ssize_t)plan.inputs.size(), given);
    if (!lm_gpu_error_check(plan)) return nullptr;
    GpuCall call(plan);
    call.marks = marks;
    if (!lm_gpu_read_inputs(call, arguments) || !lm_gpu_find_sizes(call)) return nullptr;
    if (plan.narrow >= 0 && !call.slots[plan.narrow]) {
        PyObject *wide = wide_program(plan);
        return wide ? PyObject_Vectorcall(wide, arguments, (size_t)given, nullptr) : nullptr;
    }
    if (!lm_gpu_check_inputs(call)) return nullptr;
    Opaque before = nullptr;
    if (!lm_cuda_enter(plan.device, &before)) return nullptr;
    call.stream = call.abi->stream(plan.device);
    PyObject *result = PyErr_Occurred() ? nullptr : call_inside(program, call);
    lm_cuda_leave(before);
    return result;
}

PyObject *program_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *keywords) {
    auto *program = reinterpret_cast<GpuProgram *>(self);
    if (keywords && PyTuple_GET_SIZE(keywords)) return PyErr_Format(PyExc_TypeError, "%U takes no keywords", program->plan->name);
    return call_with(program, arguments, PyVectorcall_NARGS(flags), nullptr);
}

PyObject *time_steps(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    std::vector<Opaque> marks;
    return call_with(reinterpret_cast<GpuProgram *>(self), arguments, given, &marks);
}

PyObject *fits(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    GpuPlan &plan = *reinterpret_cast<GpuProgram *>(self)->plan;
    GpuCall call(plan);
    if (given != (Py_ssize_t)plan.inputs.size()) return PyErr_Format(PyExc_TypeError, "%U takes %zd inputs", plan.name, (Py_ssize_t)plan.inputs.size());
    if (!lm_gpu_read_inputs(call, arguments) || !lm_gpu_find_sizes(call)) return nullptr;
    return PyBool_FromLong(plan.narrow < 0 || call.slots[plan.narrow]);
}

void program_dealloc(PyObject *self) {
    auto *program = reinterpret_cast<GpuProgram *>(self);
    PyObject *kind, *value, *trace; // what is being raised goes on
    PyErr_Fetch(&kind, &value, &trace);
    if (program->weak) PyObject_ClearWeakRefs(self);
    if (program->plan) {
        lm_gpu_error_forget(program->plan);
        Opaque before = nullptr;
        if (program->plan->loaded && lm_cuda_enter(program->plan->device, &before)) {
            const Driver *cuda = lm_cuda();
            cuda->context_synchronize(); // kernels may still use the memory and the code
            lm_gpu_drop_graphs(program);
            for (DevicePtr address : program->plan->constants_at) cuda->mem_free(address);
            for (TableCopy &table : program->plan->table_copies)
                if (table.at) cuda->mem_free(table.at);
            for (DevicePtr table : program->plan->noted_tables) cuda->mem_free(table);
            for (GpuKernel &kernel : program->plan->kernels) cuda->module_unload(kernel.module);
            lm_cuda_leave(before);
        }
        lm_gpu_clear(*program->plan);
        delete program->plan;
    }
    delete program->graphs;
    PyErr_Restore(kind, value, trace);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *program_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    auto *program = reinterpret_cast<GpuProgram *>(self);
    program->vectorcall = program_call;
    program->plan = new (std::nothrow) GpuPlan();
    program->graphs = new (std::nothrow) GpuGraphs();
    if (program->plan && program->graphs && lm_gpu_parse(*program->plan, arguments, keywords)) return self;
    Py_DECREF(self);
    return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
}

PyObject *graph_count(PyObject *self, void *) {
    return PyLong_FromSize_t(reinterpret_cast<GpuProgram *>(self)->graphs->kept.size());
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(GpuProgram, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(GpuProgram, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyMethodDef methods[] = {
    {"time_steps", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(time_steps)), METH_FASTCALL,
     "Run with these inputs; milliseconds of each step, in order. The results are dropped."},
    {"fits", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(fits)), METH_FASTCALL,
     "Whether its indices are wide enough for inputs of these sizes."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"graphs", graph_count, nullptr, "How many CUDA graphs are kept.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot type_slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(program_new)},
    {Py_tp_dealloc, reinterpret_cast<void *>(program_dealloc)},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_doc, const_cast<char *>("A GPU program: call it with its inputs, in order; gives a tuple.")},
    {0, nullptr},
};
PyType_Spec spec = {"lamina_inductor.host._cuda.Program", sizeof(GpuProgram), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, type_slots};

} // namespace

bool lm_gpu_make_outputs(GpuCall &call) {
    for (const GpuOutput &output : call.plan.outputs) {
        int64_t sizes[LAMINA_MAX_DIMS], strides[LAMINA_MAX_DIMS];
        size_t ndim = output.sizes.size();
        for (size_t d = 0; d < ndim; ++d) sizes[d] = call.slots[output.sizes[d]], strides[d] = call.slots[output.strides[d]];
        PyObject *made = call.abi->empty((int)ndim, sizes, is_contiguous(sizes, strides, ndim) ? nullptr : strides, output.dtype, LAMINA_CUDA,
                                         call.plan.device);
        if (!made) return false;
        call.outputs.push_back(made);
        call.addresses.push_back(reinterpret_cast<DevicePtr>(reinterpret_cast<lamina_tensor *>(made)->data));
    }
    return true;
}

PyObject *lm_gpu_finish(GpuCall &call) {
    const GpuPlan &plan = call.plan;
    PyObject *results = PyTuple_New((Py_ssize_t)plan.results.size());
    if (!results) return nullptr;
    for (size_t i = 0; i < plan.results.size(); ++i) {
        const GpuResult &result = plan.results[i];
        PyObject *value = nullptr;
        switch (result.kind) {
        case kOutput: value = Py_NewRef(call.outputs[(size_t)result.index]); break;
        case kInput: value = Py_NewRef(call.objects[(size_t)result.index]); break;
        case kConstant: value = Py_NewRef(result.constant); break;
        case kNumber: value = PyLong_FromLongLong(call.slots[result.index]); break;
        case kAlias: value = Py_NewRef(PyTuple_GET_ITEM(results, result.index)); break;
        }
        if (!value) { Py_DECREF(results); return nullptr; }
        PyTuple_SET_ITEM(results, (Py_ssize_t)i, value);
    }
    return results;
}

int lm_gpu_program_setup(PyObject *module) {
    PyObject *type = PyType_FromSpec(&spec);
    return type ? PyModule_AddObject(module, "Program", type) : -1;
}
