// `Program`: a callable over one generated library. A call reads and checks the inputs, allocates the outputs, runs the
// library's `lamina_run` and hands back the results. Everything a fixed shape allows is computed once, in the constructor.
#include "plan.h"

#include <dlfcn.h>

#include <new>

namespace {

void (*blas_table[4])(void) = {nullptr, nullptr, nullptr, nullptr};

struct ProgramObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Plan *plan;
    PyObject *weak; // references to it
};

struct Call {
    const Plan &plan;
    std::vector<View> views;
    std::vector<int64_t> sizes;
    std::vector<int64_t> numbers_now;
    const int64_t *numbers = nullptr;
    std::vector<void *> buffers;
    std::vector<PyObject *> outputs;
    const lamina_abi *abi = nullptr;
    PyObject *error[3] = {nullptr, nullptr, nullptr};

    explicit Call(const Plan &p) : plan(p) {}
    ~Call() {
        for (View &view : views)
            if (view.owned) Py_DECREF(view.object);
        for (PyObject *output : outputs) Py_XDECREF(output);
    }
};

int host_call(void *state, int64_t id, void *const *pointers, int64_t count) {
    Call &call = *static_cast<Call *>(state);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *addresses = PyTuple_New(count), *sizes = PyTuple_New((Py_ssize_t)call.sizes.size()), *result = nullptr;
    if (addresses && sizes) {
        for (int64_t i = 0; i < count; ++i) PyTuple_SET_ITEM(addresses, i, PyLong_FromVoidPtr(pointers[i]));
        for (size_t i = 0; i < call.sizes.size(); ++i) PyTuple_SET_ITEM(sizes, (Py_ssize_t)i, PyLong_FromLongLong(call.sizes[i]));
        result = PyObject_CallFunction(call.plan.host_call, "LOO", (long long)id, addresses, sizes);
    }
    Py_XDECREF(addresses);
    Py_XDECREF(sizes);
    if (!result) PyErr_Fetch(&call.error[0], &call.error[1], &call.error[2]);
    Py_XDECREF(result);
    PyGILState_Release(gil);
    return result ? 0 : -1;
}

PyObject *int_tuple(const int64_t *values, int n) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
    return tuple;
}

bool fits(const View &view, const InputPlan &plan, const int64_t *numbers) {
    if (view.dtype != plan.dtype || view.ndim != plan.ndim || (plan.written && !view.writable)) return false;
    const int64_t *sizes = numbers + plan.at, *strides = sizes + plan.ndim;
    bool empty = false, same = true;
    for (int i = 0; i < plan.ndim; ++i) {
        if (view.sizes[i] != sizes[i]) return false;
        if (sizes[i] == 0) empty = true;
        if (sizes[i] > 1 && view.strides[i] != strides[i] * view.stride_unit) same = false;
    }
    return same || empty;
}

bool adapt(Call &call, Py_ssize_t i, const int64_t *numbers) {
    const InputPlan &plan = call.plan.inputs[i];
    View &view = call.views[i];
    PyObject *sizes = numbers ? int_tuple(numbers + plan.at, plan.ndim) : Py_NewRef(Py_None);
    PyObject *strides = numbers ? int_tuple(numbers + plan.at + plan.ndim, plan.ndim) : Py_NewRef(Py_None);
    PyObject *made = sizes && strides ? PyObject_CallFunction(call.plan.adapt, "nOOO", i, view.object, sizes, strides) : nullptr;
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    if (!made) return false;
    if (view.owned) Py_DECREF(view.object);
    view = View();
    bool fine = lm_read(made, &view) && (!numbers || fits(view, plan, numbers));
    view.object = made;
    view.owned = true;
    if (!fine) PyErr_Format(PyExc_TypeError, "%U: input %zd could not be adapted (got %R)", call.plan.name, i, made);
    return fine;
}

bool read_inputs(Call &call, PyObject *const *arguments) {
    const Plan &plan = call.plan;
    call.views.resize(plan.inputs.size());
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
        View &view = call.views[i];
        view.object = arguments[i];
        if (plan.inputs[i].dtype < 0) continue;
        if (!lm_read(arguments[i], &view) && !adapt(call, (Py_ssize_t)i, nullptr)) return false;
        if (!call.abi) call.abi = view.abi;
    }
    if (!call.abi && plan.inputs.empty()) call.abi = plan.default_abi;
    return true;
}

bool find_sizes(Call &call) {
    const Plan &plan = call.plan;
    if (!plan.layout) {
        call.numbers = plan.numbers.data();
        return true;
    }
    for (const SizePlan &source : plan.sizes) {
        const View &view = call.views[source.input];
        int64_t value;
        if (source.dim < 0) {
            value = PyLong_AsLongLong(view.object);
            if (value == -1 && PyErr_Occurred()) return false;
        } else if (source.dim < view.ndim) {
            value = view.sizes[source.dim];
        } else {
            PyErr_Format(PyExc_RuntimeError, "%U: input %zd has %d dimensions, dimension %d is needed", plan.name,
                         source.input, view.ndim, source.dim);
            return false;
        }
        call.sizes.push_back(value);
    }
    call.numbers_now.resize(plan.numbers.size());
    plan.layout(call.sizes.data(), call.numbers_now.data());
    call.numbers = call.numbers_now.data();
    return true;
}

bool check_inputs(Call &call) {
    for (size_t i = 0; i < call.plan.inputs.size(); ++i) {
        const InputPlan &input = call.plan.inputs[i];
        if (input.dtype < 0) continue;
        if (!fits(call.views[i], input, call.numbers) && !adapt(call, (Py_ssize_t)i, call.numbers)) return false;
    }
    return true;
}

bool make_outputs(Call &call) {
    const Plan &plan = call.plan;
    for (const View &view : call.views) call.buffers.push_back(view.data);
    for (const OutputPlan &output : plan.outputs) {
        const int64_t *sizes = call.numbers + output.at, *strides = sizes + output.ndim;
        bool plain = output.contiguous || lm_is_contiguous(sizes, strides, output.ndim);
        PyObject *made = call.abi ? call.abi->empty(output.ndim, sizes, plain ? nullptr : strides, output.dtype, LAMINA_CPU, 0)
                                  : lm_new_array(output.dtype, output.ndim, sizes, strides, plain);
        if (!made) return false;
        call.outputs.push_back(made);
        call.buffers.push_back(call.abi ? reinterpret_cast<lamina_tensor *>(made)->data : lm_array_data(made));
    }
    for (void *constant : plan.constants) call.buffers.push_back(constant);
    return true;
}

int64_t run(Call &call) {
    int64_t bytes = call.numbers[call.plan.workspace_at];
    char *workspace = lm_take_workspace(bytes);
    if (!workspace) {
        PyErr_Format(PyExc_MemoryError, "%U: no memory for a workspace of %lld bytes", call.plan.name, (long long)bytes);
        return -2;
    }
    lm_host host = {LAMINA_HOST_VERSION, lm_pool_threads(), lm_pool_parallel, lm_pool_scratch, host_call, &call,
                    lm_step_gemm, lm_step_convolution, blas_table, lm_step_attention, lm_step_attention_backward};
    int64_t status;
    if (call.plan.release_gil) {
        PyThreadState *thread = PyEval_SaveThread();
        status = call.plan.run(&host, call.buffers.data(), call.sizes.data(), workspace);
        PyEval_RestoreThread(thread);
    } else {
        status = call.plan.run(&host, call.buffers.data(), call.sizes.data(), workspace);
    }
    lm_give_workspace(workspace);
    for (size_t i = 0; i < call.views.size(); ++i)
        if (call.plan.inputs[i].written && call.views[i].version) ++*call.views[i].version;
    return status;
}

PyObject *size_tuple(const Call &call) {
    PyObject *sizes = PyTuple_New((Py_ssize_t)call.sizes.size());
    for (size_t i = 0; sizes && i < call.sizes.size(); ++i) {
        PyObject *size = PyLong_FromLongLong(call.sizes[i]);
        if (!size) { Py_CLEAR(sizes); break; }
        PyTuple_SET_ITEM(sizes, (Py_ssize_t)i, size);
    }
    return sizes;
}

PyObject *finish(Call &call) {
    const Plan &plan = call.plan;
    PyObject *results = PyTuple_New((Py_ssize_t)plan.results.size());
    if (!results) return nullptr;
    for (size_t i = 0; i < plan.results.size(); ++i) {
        const ResultPlan &result = plan.results[i];
        PyObject *value = nullptr;
        switch (result.kind) {
        case kOutput: value = Py_NewRef(call.outputs[result.index]); break;
        case kInput: value = Py_NewRef(call.views[result.index].object); break;
        case kConstant: value = Py_NewRef(result.constant); break;
        case kNumber: value = PyLong_FromLongLong(call.numbers[result.index]); break;
        case kAlias: value = Py_NewRef(PyTuple_GET_ITEM(results, result.index)); break;
        }
        if (!value) { Py_DECREF(results); return nullptr; }
        PyTuple_SET_ITEM(results, (Py_ssize_t)i, value);
    }
    return results;
}

PyObject *program_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *keywords) {
    const Plan &plan = *reinterpret_cast<ProgramObject *>(self)->plan;
    Py_ssize_t given = PyVectorcall_NARGS(flags);
    if (keywords && PyTuple_GET_SIZE(keywords)) return PyErr_Format(PyExc_TypeError, "%U takes no keywords", plan.name);
    if (given != (Py_ssize_t)plan.inputs.size())
        return PyErr_Format(PyExc_TypeError, "%U takes %zd inputs, got %zd", plan.name, (Py_ssize_t)plan.inputs.size(), given);
    Call call(plan);
    if (!read_inputs(call, arguments) || !find_sizes(call) || !check_inputs(call) || !make_outputs(call)) return nullptr;
    int64_t status = run(call);
    if (status == 0) return finish(call);
    if (call.error[0]) {
        PyErr_Restore(call.error[0], call.error[1], call.error[2]);
    } else if (status != -2) {
        PyObject *sizes = size_tuple(call);
        PyObject *nothing = sizes ? PyObject_CallFunction(plan.fail, "LN", (long long)status, sizes) : nullptr;
        if (nothing) PyErr_Format(PyExc_RuntimeError, "%U failed with error word %lld", plan.name, (long long)status);
        Py_XDECREF(nothing);
    }
    return nullptr;
}

void program_dealloc(PyObject *self) {
    if (reinterpret_cast<ProgramObject *>(self)->weak) PyObject_ClearWeakRefs(self);
    Plan *plan = reinterpret_cast<ProgramObject *>(self)->plan;
    if (plan) {
        for (ResultPlan &result : plan->results) Py_XDECREF(result.constant);
        Py_XDECREF(plan->name);
        Py_XDECREF(plan->keep);
        Py_XDECREF(plan->host_call);
        Py_XDECREF(plan->adapt);
        Py_XDECREF(plan->fail);
        if (plan->library) dlclose(plan->library);
        delete plan;
    }
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *program_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    auto *program = reinterpret_cast<ProgramObject *>(self);
    program->vectorcall = program_call;
    program->plan = new (std::nothrow) Plan();
    if (program->plan && lm_build_plan(*program->plan, arguments, keywords)) return self;
    Py_DECREF(self);
    return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ProgramObject, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ProgramObject, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(program_new)},
    {Py_tp_dealloc, reinterpret_cast<void *>(program_dealloc)},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char *>("A generated program: call it with its inputs, in order; gives a tuple.")},
    {0, nullptr},
};
PyType_Spec spec = {"lamina_inductor.host._launcher.Program", sizeof(ProgramObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};

} // namespace

int lm_program_setup(PyObject *module) {
    PyObject *type = PyType_FromSpec(&spec);
    if (!type) return -1;
    return PyModule_AddObject(module, "Program", type);
}

PyObject *lm_set_blas(PyObject *, PyObject *addresses) {
    if (!PyTuple_Check(addresses) || PyTuple_GET_SIZE(addresses) != 4)
        return PyErr_Format(PyExc_TypeError, "expected the addresses of sgemm, dgemm, cgemm, zgemm");
    for (Py_ssize_t i = 0; i < 4; ++i)
        blas_table[i] = reinterpret_cast<void (*)(void)>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(addresses, i)));
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
}
