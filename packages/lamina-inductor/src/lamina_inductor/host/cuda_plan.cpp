// From plain Python tuples to a GpuPlan, and the arithmetic of its slots.
#include "cuda_plan.h"

#include <string.h>

namespace {

bool numbers(PyObject *tuple, std::vector<int> *into) {
    if (!PyTuple_Check(tuple)) { PyErr_SetString(PyExc_TypeError, "a plan has tuples of numbers"); return false; }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) into->push_back((int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, i)));
    return !PyErr_Occurred();
}

// Calls `read(row)` for each tuple of a tuple.
template <typename F> bool rows(PyObject *table, F read) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(table); ++i)
        if (!read(PyTuple_GET_ITEM(table, i))) return false;
    return true;
}

bool inputs(GpuPlan &plan, PyObject *table) {
    return rows(table, [&](PyObject *row) {
        GpuInput input;
        int written, on_host;
        PyObject *sizes, *strides;
        if (row != Py_None) {
            if (!PyArg_ParseTuple(row, "ippiOO", &input.dtype, &written, &on_host, &input.staged, &sizes, &strides)) return false;
            input.written = written, input.on_host = on_host;
            if (!numbers(sizes, &input.sizes) || !numbers(strides, &input.strides)) return false;
        }
        plan.inputs.push_back(input);
        return true;
    });
}

bool outputs(GpuPlan &plan, PyObject *table) {
    return rows(table, [&](PyObject *row) {
        GpuOutput output;
        int on_host;
        PyObject *sizes, *strides;
        if (!PyArg_ParseTuple(row, "ipOO", &output.dtype, &on_host, &sizes, &strides)) return false;
        output.on_host = on_host;
        if (!numbers(sizes, &output.sizes) || !numbers(strides, &output.strides)) return false;
        plan.outputs.push_back(output);
        return true;
    });
}

bool slots(GpuPlan &plan, PyObject *values, PyObject *operations, PyObject *sizes) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i) plan.slots.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(values, i)));
    if (PyErr_Occurred()) return false;
    bool fine = rows(operations, [&](PyObject *row) {
        Operation o;
        if (!PyArg_ParseTuple(row, "iiii", &o.target, &o.code, &o.a, &o.b)) return false;
        plan.operations.push_back(o);
        return true;
    });
    return fine && rows(sizes, [&](PyObject *row) {
        GpuSize size;
        if (!PyArg_ParseTuple(row, "ni", &size.input, &size.dim)) return false;
        plan.sizes.push_back(size);
        return true;
    });
}

bool kernels(GpuPlan &plan, PyObject *table) {
    return rows(table, [&](PyObject *row) {
        GpuKernel kernel;
        const char *name;
        int cooperative = 0;
        if (!PyArg_ParseTuple(row, "sSiii|p", &name, &kernel.image, &kernel.shared, &kernel.threads, &kernel.clusters, &cooperative)) return false;
        kernel.name = name, kernel.cooperative = cooperative;
        Py_INCREF(kernel.image);
        plan.kernels.push_back(kernel);
        return true;
    });
}

bool argument(PyObject *row, Argument *into) {
    long long value;
    if (!PyArg_ParseTuple(row, "iiiL", &into->kind, &into->place.buffer, &into->place.offset, &value)) return false;
    into->value = value;
    return true;
}

bool descriptors(GpuPlan &plan, PyObject *table) {
    return rows(table, [&](PyObject *row) {
        auto made = std::make_unique<Descriptor>();
        PyObject *sizes, *strides, *block;
        std::vector<int> sides;
        if (!PyArg_ParseTuple(row, "iiiOOO", &made->type, &made->swizzle, &made->item, &sizes, &strides, &block)) return false;
        if (!numbers(sizes, &made->sizes) || !numbers(strides, &made->strides) || !numbers(block, &sides)) return false;
        made->block.assign(sides.begin(), sides.end());
        plan.descriptors.push_back(std::move(made));
        return true;
    });
}

bool tables(GpuPlan &plan, PyObject *table) {
    return rows(table, [&](PyObject *cells) {
        Table made;
        bool fine = rows(cells, [&](PyObject *row) {
            Argument cell;
            if (!argument(row, &cell)) return false;
            made.push_back(cell);
            return true;
        });
        plan.tables.push_back(std::move(made));
        plan.table_copies.emplace_back();
        return fine;
    });
}

bool launch(GpuPlan &plan, PyObject *row) {
    LaunchStep step;
    PyObject *arguments;
    if (!PyArg_ParseTuple(row, "i(iii)O!", &step.kernel, &step.grid[0], &step.grid[1], &step.grid[2], &PyTuple_Type, &arguments)) return false;
    bool fine = rows(arguments, [&](PyObject *item) {
        Argument made;
        if (!argument(item, &made)) return false;
        step.arguments.push_back(made);
        return true;
    });
    plan.steps.push_back({kLaunch, (int)plan.launches.size()});
    plan.launches.push_back(std::move(step));
    return fine;
}

bool product(GpuPlan &plan, PyObject *row) {
    ProductStep p;
    int accumulate, tf32, *s = p.strides;
    if (!PyArg_ParseTuple(row, "iipp(ii)(ii)(ii)(iiiii)(iiiiiiiiiiii)", &p.dtype, &p.out_dtype, &accumulate, &tf32, &p.a.buffer, &p.a.offset,
                          &p.b.buffer, &p.b.offset, &p.c.buffer, &p.c.offset, &p.outer, &p.batch, &p.m, &p.n, &p.k, s, s + 1, s + 2, s + 3,
                          s + 4, s + 5, s + 6, s + 7, s + 8, s + 9, s + 10, s + 11))
        return false;
    p.accumulate = accumulate, p.tf32 = tf32;
    plan.steps.push_back({kProduct, (int)plan.products.size()});
    plan.products.push_back(p);
    return true;
}

bool call(GpuPlan &plan, PyObject *row) {
    CallStep step;
    PyObject *places;
    if (!PyArg_ParseTuple(row, "iO!", &step.number, &PyTuple_Type, &places)) return false;
    plan.steps.push_back({kCall, (int)plan.calls.size()});
    bool fine = rows(places, [&](PyObject *item) {
        Place place;
        if (!PyArg_ParseTuple(item, "ii", &place.buffer, &place.offset)) return false;
        step.places.push_back(place);
        return true;
    });
    plan.calls.push_back(std::move(step));
    return fine;
}

bool copy(GpuPlan &plan, PyObject *row) {
    CopyStep step;
    if (!PyArg_ParseTuple(row, "(ii)(ii)i", &step.target.buffer, &step.target.offset, &step.source.buffer, &step.source.offset, &step.bytes)) return false;
    plan.steps.push_back({kCopy, (int)plan.copies.size()});
    plan.copies.push_back(step);
    return true;
}

bool steps(GpuPlan &plan, PyObject *table) {
    return rows(table, [&](PyObject *row) {
        const char *kind;
        PyObject *rest;
        if (!PyArg_ParseTuple(row, "sO!", &kind, &PyTuple_Type, &rest)) return false;
        if (!strcmp(kind, "launch")) return launch(plan, rest);
        if (!strcmp(kind, "product")) return product(plan, rest);
        if (!strcmp(kind, "call")) return call(plan, rest);
        return copy(plan, rest);
    });
}

bool results(GpuPlan &plan, PyObject *table) {
    return rows(table, [&](PyObject *row) {
        const char *kind;
        PyObject *value;
        if (!PyArg_ParseTuple(row, "sO", &kind, &value)) return false;
        GpuResult result{kConstant, 0, nullptr};
        if (!strcmp(kind, "constant")) {
            result.constant = Py_NewRef(value);
        } else {
            result.kind = !strcmp(kind, "output") ? kOutput : !strcmp(kind, "input") ? kInput : !strcmp(kind, "number") ? kNumber : kAlias;
            result.index = PyLong_AsSsize_t(value);
        }
        plan.results.push_back(result);
        return !PyErr_Occurred();
    });
}

// Kernel parameters lie in one array per launch; pointers to them never change.
void point(GpuPlan &plan) {
    for (LaunchStep &step : plan.launches) {
        step.values.assign(step.arguments.size(), 0);
        step.pointers.clear();
        for (size_t i = 0; i < step.arguments.size(); ++i) {
            const Argument &argument = step.arguments[i];
            if (argument.kind == kBits) step.values[i] = (uint64_t)argument.value;
            step.pointers.push_back(argument.kind == kDescriptor ? static_cast<void *>(&plan.descriptors[(size_t)argument.value]->map) : &step.values[i]);
        }
        step.pointers.push_back(nullptr); // the driver does not look here; whoever records launches sees the end
    }
}

} // namespace

bool lm_gpu_parse(GpuPlan &plan, PyObject *arguments, PyObject *keywords) {
    static const char *names[] = {"name", "device", "inputs", "outputs", "sizes", "slots", "operations", "constants", "workspace", "kernels",
                                  "descriptors", "tables", "steps", "results", "host_call", "fail", "adapt", "checks", "captured", "narrow", "wider", nullptr};
    PyObject *in, *out, *size, *slot, *operation, *constant, *offsets, *kernel, *descriptor, *table, *step, *result, *call, *fail, *adapt, *wider = nullptr;
    int checks, captured;
    PyTypeObject *t = &PyTuple_Type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "UiO!O!O!O!O!O!(iiO!)O!O!O!O!O!OOOpi|iO", const_cast<char **>(names), &plan.name, &plan.device,
                                     t, &in, t, &out, t, &size, t, &slot, t, &operation, t, &constant, &plan.workspace_bytes,
                                     &plan.blas_offset, t, &offsets, t, &kernel, t, &descriptor, t, &table, t, &step, t, &result, &call, &fail,
                                     &adapt, &checks, &captured, &plan.narrow, &wider)) {
        plan.name = nullptr;
        return false;
    }
    Py_INCREF(plan.name);
    plan.host_call = Py_NewRef(call), plan.fail = Py_NewRef(fail), plan.adapt = Py_NewRef(adapt);
    plan.checks = checks, plan.captured = captured;
    plan.wider = Py_XNewRef(wider);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constant); ++i) plan.constants.push_back(Py_NewRef(PyTuple_GET_ITEM(constant, i)));
    bool fine = numbers(offsets, &plan.workspace_offsets) && slots(plan, slot, operation, size) && inputs(plan, in) && outputs(plan, out) &&
                kernels(plan, kernel) && descriptors(plan, descriptor) && tables(plan, table) && steps(plan, step) && results(plan, result);
    if (fine) point(plan);
    return fine;
}

void lm_gpu_clear(GpuPlan &plan) {
    for (GpuResult &result : plan.results) Py_XDECREF(result.constant);
    for (GpuKernel &kernel : plan.kernels) Py_XDECREF(kernel.image);
    for (PyObject *constant : plan.constants) Py_XDECREF(constant);
    Py_XDECREF(plan.name);
    Py_XDECREF(plan.host_call);
    Py_XDECREF(plan.fail);
    Py_XDECREF(plan.adapt);
    Py_XDECREF(plan.wider);
    Py_XDECREF(plan.wide);
}

namespace {

// Sizes beyond 64 bits stay at the end: they are compared with limits, and no memory is as large.
int64_t sum(int64_t a, int64_t b) {
    int64_t result;
    return __builtin_add_overflow(a, b, &result) ? (a < 0 ? INT64_MIN : INT64_MAX) : result;
}

int64_t times(int64_t a, int64_t b) {
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? ((a < 0) != (b < 0) ? INT64_MIN : INT64_MAX) : result;
}

} // namespace

void lm_gpu_evaluate(const GpuPlan &plan, int64_t *slots) {
    for (const Operation &o : plan.operations) {
        int64_t a = slots[o.a], b = slots[o.b], result = 0;
        switch (o.code) {
        case kAdd: result = sum(a, b); break;
        case kMultiply: result = times(a, b); break;
        case kFloorDivide: result = b ? a / b - ((a % b != 0) && ((a < 0) != (b < 0))) : 0; break;
        case kModulo: result = b ? (a % b + b) % b : 0; break;
        case kMinimum: result = a < b ? a : b; break;
        case kMaximum: result = a > b ? a : b; break;
        case kEqual: result = a == b; break;
        case kNotEqual: result = a != b; break;
        case kLess: result = a < b; break;
        case kLessEqual: result = a <= b; break;
        case kAnd: result = a && b; break;
        case kOr: result = a || b; break;
        }
        slots[o.target] = result;
    }
}
