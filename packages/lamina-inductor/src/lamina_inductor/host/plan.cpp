// From the description of a program (plain Python tuples) to a plan, and the library behind it.
#include "plan.h"

#include <dlfcn.h>
#include <string.h>

bool lm_is_contiguous(const int64_t *sizes, const int64_t *strides, int ndim) {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; --i) {
        if (sizes[i] != 1 && strides[i] != step) return false;
        step *= sizes[i] > 1 ? sizes[i] : 1;
    }
    return true;
}

namespace {

bool parse_inputs(Plan &plan, PyObject *rows, Py_ssize_t *at) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); ++i) {
        InputPlan input;
        int written;
        PyObject *row = PyTuple_GET_ITEM(rows, i);
        if (row != Py_None) {
            if (!PyArg_ParseTuple(row, "iip", &input.dtype, &input.ndim, &written)) return false;
            input.written = written;
            input.at = *at;
            *at += 2 * input.ndim;
        }
        plan.inputs.push_back(input);
    }
    return true;
}

bool parse_outputs(Plan &plan, PyObject *rows, Py_ssize_t *at) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); ++i) {
        OutputPlan output{};
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, i), "ii", &output.dtype, &output.ndim)) return false;
        output.at = *at;
        *at += 2 * output.ndim;
        plan.outputs.push_back(output);
    }
    plan.workspace_at = (*at)++;
    return true;
}

bool parse_sizes(Plan &plan, PyObject *rows) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); ++i) {
        SizePlan size{};
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, i), "ni", &size.input, &size.dim)) return false;
        plan.sizes.push_back(size);
    }
    return true;
}

bool parse_results(Plan &plan, PyObject *rows, Py_ssize_t *at) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); ++i) {
        const char *kind;
        PyObject *value;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, i), "sO", &kind, &value)) return false;
        ResultPlan result{kConstant, 0, nullptr};
        if (!strcmp(kind, "constant")) {
            result.constant = Py_NewRef(value);
        } else if (!strcmp(kind, "number")) {
            result = {kNumber, (*at)++, nullptr};
        } else {
            result.kind = !strcmp(kind, "output") ? kOutput : !strcmp(kind, "input") ? kInput : kAlias;
            result.index = PyLong_AsSsize_t(value);
            if (result.index == -1 && PyErr_Occurred()) return false;
        }
        plan.results.push_back(result);
    }
    return true;
}

bool parse_numbers(Plan &plan, PyObject *numbers, Py_ssize_t count) {
    plan.numbers.resize((size_t)count);
    if (numbers == Py_None) return true;
    if (PyTuple_GET_SIZE(numbers) != count) {
        PyErr_Format(PyExc_ValueError, "%U: %zd numbers given, %zd needed", plan.name, PyTuple_GET_SIZE(numbers), count);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; ++i) plan.numbers[(size_t)i] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i));
    for (OutputPlan &output : plan.outputs) {
        const int64_t *sizes = plan.numbers.data() + output.at;
        output.contiguous = lm_is_contiguous(sizes, sizes + output.ndim, output.ndim);
    }
    return !PyErr_Occurred();
}

bool open_library(Plan &plan, const char *path, bool dynamic) {
    plan.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plan.library) { PyErr_Format(PyExc_OSError, "cannot load %s: %s", path, dlerror()); return false; }
    plan.run = reinterpret_cast<lm_run>(dlsym(plan.library, "lamina_run"));
    if (dynamic) plan.layout = reinterpret_cast<lm_layout>(dlsym(plan.library, "lamina_layout"));
    if (plan.run && (!dynamic || plan.layout)) return true;
    PyErr_Format(PyExc_OSError, "%s is no generated program: an entry point is missing", path);
    return false;
}

} // namespace

bool lm_build_plan(Plan &plan, PyObject *arguments, PyObject *keywords) {
    static const char *names[] = {"name", "path", "inputs", "outputs", "sizes", "numbers", "results", "constants",
                                  "host_call", "adapt", "fail", "release_gil", nullptr};
    const char *path;
    PyObject *inputs, *outputs, *sizes, *numbers, *results, *constants, *host, *adapter, *fail;
    int release;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "UsO!O!O!OO!O!OOOp", const_cast<char **>(names), &plan.name, &path,
                                     &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &PyTuple_Type, &sizes, &numbers,
                                     &PyTuple_Type, &results, &PyTuple_Type, &constants, &host, &adapter, &fail, &release)) {
        plan.name = nullptr;
        return false;
    }
    Py_INCREF(plan.name);
    plan.keep = Py_NewRef(constants);
    plan.host_call = Py_NewRef(host);
    plan.adapt = Py_NewRef(adapter);
    plan.fail = Py_NewRef(fail);
    plan.release_gil = release;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); ++i) {
        View view;
        if (!lm_read(PyTuple_GET_ITEM(constants, i), &view)) {
            PyErr_Format(PyExc_TypeError, "%U: constant %zd is not an array", plan.name, i);
            return false;
        }
        plan.constants.push_back(view.data);
    }
    Py_ssize_t at = 0;
    return parse_inputs(plan, inputs, &at) && parse_outputs(plan, outputs, &at) && parse_sizes(plan, sizes) &&
           parse_results(plan, results, &at) && parse_numbers(plan, numbers, at) &&
           open_library(plan, path, numbers == Py_None);
}
