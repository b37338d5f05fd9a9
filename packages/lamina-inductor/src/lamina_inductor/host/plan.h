// What a program is called with, computed once from the description (see artifact.py).
#ifndef LAMINA_PLAN_H
#define LAMINA_PLAN_H
#include "launcher.h"

#include <vector>

struct Plan {
    void *library = nullptr;
    lm_run run = nullptr;
    lm_layout layout = nullptr;
    PyObject *name = nullptr;
    std::vector<InputPlan> inputs;
    std::vector<OutputPlan> outputs;
    std::vector<SizePlan> sizes;
    std::vector<ResultPlan> results;
    std::vector<int64_t> numbers; // for fixed shapes; otherwise only its length counts
    std::vector<void *> constants;
    Py_ssize_t workspace_at = 0;
    PyObject *keep = nullptr;      // constants, held alive
    PyObject *host_call = nullptr; // (id, addresses, sizes) -> None
    PyObject *adapt = nullptr;     // (index, value, sizes, strides, dtype code) -> something readable, or raises
    PyObject *fail = nullptr;      // (error word) -> raises
    const lamina_abi *default_abi = nullptr;
    bool release_gil = true;
};

bool lm_build_plan(Plan &plan, PyObject *arguments, PyObject *keywords); // false with an exception set
bool lm_is_contiguous(const int64_t *sizes, const int64_t *strides, int ndim);

#endif
