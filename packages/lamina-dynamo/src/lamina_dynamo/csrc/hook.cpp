/* The eval-frame hook: what happens between a call and the first instruction of its frame. */
#include "hook.h"

#include <algorithm>

namespace lamina {

thread_local ThreadCapture capture;
Counters counters;

static Py_ssize_t extra_index = -1;
static lf_evaluator previous = nullptr; /* what was installed before us: debuggers and other compilers are chained */
static long captures = 0;               /* threads that capture now */

Entry::~Entry()
{
    Py_XDECREF(reinterpret_cast<PyObject *>(code));
    Py_XDECREF(reinterpret_cast<PyObject *>(flat));
    Py_XDECREF(info);
}

OwnerState *CodeState::find(long owner, bool create)
{
    for (auto &state : owners)
        if (state->owner == owner) return state.get();
    if (!create) return nullptr;
    owners.push_back(std::make_unique<OwnerState>());
    owners.back()->owner = owner;
    return owners.back().get();
}

static void free_state(void *state) { delete static_cast<CodeState *>(state); }

CodeState *code_state(PyCodeObject *code, bool create)
{
    auto *state = static_cast<CodeState *>(lf_extra_get(code, extra_index));
    if (state == nullptr && create) {
        state = new CodeState;
        if (lf_extra_set(code, extra_index, state) < 0) {
            delete state;
            return nullptr;
        }
    }
    return state;
}

static PyObject *hook(PyThreadState *ts, lf_frame *frame, int throwflag);

static void install()
{
    if (captures++ == 0 && lf_get_evaluator() != hook) {
        previous = lf_get_evaluator();
        lf_set_evaluator(hook);
    }
}

static void uninstall()
{
    /* Only if nobody installed over us; they chain to the hook, which then passes everything on. */
    if (--captures == 0 && lf_get_evaluator() == hook) lf_set_evaluator(previous);
}

CaptureScope::CaptureScope(PyObject *callback, long owner) : saved(capture)
{
    if (callback != nullptr && saved.callback == nullptr) install();
    if (callback == nullptr && saved.callback != nullptr) uninstall();
    Py_XINCREF(callback);
    capture.callback = callback;
    capture.owner = owner;
}

CaptureScope::~CaptureScope()
{
    PyObject *callback = capture.callback;
    if (callback != nullptr && saved.callback == nullptr) uninstall();
    if (callback == nullptr && saved.callback != nullptr) install();
    capture = saved;
    Py_XDECREF(callback);
}

void start_hook()
{
    extra_index = lf_extra_index(free_state);
    previous = lf_get_evaluator();
}

void after_fork_in_child()
{
    /* The threads that captured are gone. */
    captures = capture.callback != nullptr ? 1 : 0;
    if (captures == 0 && lf_get_evaluator() == hook) lf_set_evaluator(previous);
}

/* `inputs`: what the guards fetched for the code, or NULL; the reference is taken. */
static PyObject *run_entry(PyThreadState *ts, lf_frame *frame, const std::shared_ptr<Entry> &entry, PyObject *inputs)
{
    /* The entry may be dropped while its code runs: the frame holds the code, nothing else is needed. */
    int done = 0;
    PyObject *result = lf_run_in_place(ts, frame, entry->code, inputs, previous, &done);
    if (done) return result;
    ++counters.fallbacks;
    PyCodeObject *flat = reinterpret_cast<PyCodeObject *>(Py_NewRef(reinterpret_cast<PyObject *>(entry->flat)));
    result = lf_run_by_call(ts, frame, flat, inputs);
    Py_DECREF(flat);
    Py_XDECREF(inputs);
    return result;
}

static int evaluate(const GuardProgram &guards, const lf_view &view, PyObject **inputs)
{
    if (!guards.runs_python) return guards.evaluate(view, inputs);
    CaptureScope off(nullptr, 0); /* what a guard runs is not captured */
    return guards.evaluate(view, inputs);
}

/* The entry that fits, moved to the front; NULL when none does. `failures` collects the guard that failed in each; *inputs is what
 * `run_entry` takes. */
static std::shared_ptr<Entry> find_entry(OwnerState *state, const lf_view &view, std::vector<int> *failures, PyObject **inputs)
{
    auto &entries = state->entries;
    for (size_t k = 0; k < entries.size(); k++) {
        std::shared_ptr<Entry> entry = entries[k];
        int failed = evaluate(*entry->guards, view, inputs);
        if (failed < 0) {
            /* guards may have run Python and changed the list */
            if (k > 0 && k < entries.size() && entries[k] == entry)
                std::rotate(entries.begin(), entries.begin() + k, entries.begin() + k + 1);
            return entry;
        }
        if (failures != nullptr) failures->push_back(failed);
    }
    return nullptr;
}

static PyObject *argument_dict(const lf_view &view)
{
    PyObject *names = PyCode_GetVarnames(view.code), *locals = PyDict_New();
    for (int i = 0; names && locals && i < view.arguments; i++) {
        PyObject *value = lf_argument(&view, i);
        if (value != nullptr && PyDict_SetItem(locals, PyTuple_GET_ITEM(names, i), value) < 0) Py_CLEAR(locals);
    }
    Py_XDECREF(names);
    return locals;
}

static PyObject *failure_list(OwnerState *state, const std::vector<int> &failures)
{
    PyObject *list = PyList_New(0);
    for (size_t k = 0; list && k < failures.size() && k < state->entries.size(); k++) {
        PyObject *pair = Py_BuildValue("(Oi)", state->entries[k]->info, failures[k]);
        if (pair == nullptr || PyList_Append(list, pair) < 0) Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

/* Ask Python to compile the frame; it adds entries through `add_entry` or marks the code. False: an exception is set. */
static bool compile(const lf_view &view, OwnerState *state, const std::vector<int> &failures)
{
    PyObject *callback = Py_NewRef(capture.callback);
    long owner = capture.owner;
    state->busy = true;
    PyObject *locals = argument_dict(view), *misses = failure_list(state, failures), *answer = nullptr;
    PyObject *closure = lf_closure(&view);
    PyCodeObject *code = view.code;
    Py_INCREF(reinterpret_cast<PyObject *>(code));
    if (locals != nullptr && misses != nullptr) {
        CaptureScope off(nullptr, 0); /* the compiler's own frames are not captured */
        bool was_compiling = capture.compiling;
        capture.compiling = true;
        answer = PyObject_CallFunctionObjArgs(callback, reinterpret_cast<PyObject *>(code), locals, view.globals,
                                              view.builtins, closure ? closure : Py_None, misses, nullptr);
        capture.compiling = was_compiling;
    }
    /* The state lives as long as the code, whose frame is alive. */
    OwnerState *now = code_state(code, true)->find(owner, true);
    now->busy = false;
    Py_DECREF(reinterpret_cast<PyObject *>(code));
    Py_DECREF(callback);
    Py_XDECREF(locals);
    Py_XDECREF(misses);
    Py_XDECREF(answer);
    return answer != nullptr;
}

/* A new entry (the first) that does not fit the frame it was made from is a fault of the compiler: tell it, if it listens. */
static bool report_unfit(const lf_view &view, OwnerState *state, int failed)
{
    if (state->entries.empty() || !PyObject_HasAttrString(capture.callback, "unfit")) return true;
    PyObject *locals = argument_dict(view), *answer = nullptr;
    PyObject *callback = Py_NewRef(capture.callback), *info = Py_NewRef(state->entries[0]->info);
    if (locals != nullptr) {
        CaptureScope off(nullptr, 0);
        answer = PyObject_CallMethod(callback, "unfit", "OOiO", view.code, info, failed, locals);
    }
    Py_XDECREF(locals);
    Py_DECREF(callback);
    Py_DECREF(info);
    Py_XDECREF(answer);
    return answer != nullptr;
}

static PyObject *capture_frame(PyThreadState *ts, lf_frame *frame, const lf_view &view, CodeState *code)
{
    OwnerState *state = code->find(capture.owner, true);
    if (state->skip) return lf_evaluate(ts, frame, 0, previous);
    std::vector<int> failures;
    PyObject *inputs = nullptr;
    std::shared_ptr<Entry> entry = find_entry(state, view, &failures, &inputs);
    if (entry == nullptr && !state->frozen && !state->busy) {
        ++counters.misses;
        size_t before = state->entries.size();
        if (!compile(view, state, failures)) {
            lf_drop(ts, frame);
            return nullptr;
        }
        failures.clear();
        if (!state->skip) entry = find_entry(state, view, &failures, &inputs);
        if (entry == nullptr && state->entries.size() > before && !failures.empty() && !report_unfit(view, state, failures[0])) {
            lf_drop(ts, frame);
            return nullptr;
        }
    } else if (entry != nullptr)
        ++counters.hits;
    return entry != nullptr ? run_entry(ts, frame, entry, inputs) : lf_evaluate(ts, frame, 0, previous);
}

static PyObject *hook(PyThreadState *ts, lf_frame *frame, int throwflag)
{
    PyCodeObject *code;
    lf_view view;
    if (capture.callback == nullptr || (code = lf_code(frame)) == nullptr)
        return lf_evaluate(ts, frame, throwflag, previous);
    CodeState *state = code_state(code, false);
    if ((state != nullptr && state->skip) || !lf_view_frame(frame, throwflag, &view))
        return lf_evaluate(ts, frame, throwflag, previous);
    if (state == nullptr && (state = code_state(code, true)) == nullptr) {
        lf_drop(ts, frame);
        return PyErr_NoMemory();
    }
    return capture_frame(ts, frame, view, state);
}

}  // namespace lamina
