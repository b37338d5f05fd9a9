/* The CPython frame from outside: the only file that sees internal headers. See _frame.h. */
#define PY_SSIZE_T_CLEAN
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#error "CPython 3.11 or later"
#endif
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#include <internal/pycore_stackref.h>
#else
#include <internal/pycore_frame.h>
#endif
#include "_frame.h"

#define V312 (PY_VERSION_HEX >= 0x030C0000)
#define V313 (PY_VERSION_HEX >= 0x030D0000)
#define V314 (PY_VERSION_HEX >= 0x030E0000)

/* One slot of a frame: an object pointer up to 3.13, a tagged reference from 3.14 on. */
#if V314
typedef _PyStackRef slot;
#define SLOT_GET(s) (PyStackRef_IsNull(s) ? NULL : PyStackRef_AsPyObjectBorrow(s))
#define SLOT_NULL PyStackRef_NULL
#define SLOT_STEAL(o) PyStackRef_FromPyObjectSteal(o)
#define SLOT_CLEAR(s) do { slot old_ = (s); (s) = PyStackRef_NULL; PyStackRef_XCLOSE(old_); } while (0)
#else
typedef PyObject *slot;
#define SLOT_GET(s) (s)
#define SLOT_NULL NULL
#define SLOT_STEAL(o) (o)
#define SLOT_CLEAR(s) Py_CLEAR(s)
#endif

#define GENERATOR_LIKE (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)
#define PLAIN_FUNCTION (CO_OPTIMIZED | CO_NEWLOCALS)

static int argument_slots(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0)
        + ((code->co_flags & CO_VARKEYWORDS) != 0);
}

PyCodeObject *lf_code(lf_frame *frame)
{
#if V313
    PyObject *executable = SLOT_GET(frame->f_executable);
    return executable != NULL && PyCode_Check(executable) ? (PyCodeObject *)executable : NULL;
#else
    return frame->f_code;
#endif
}

static int has_started(const lf_frame *frame, PyCodeObject *code)
{
#if V313
    return frame->instr_ptr != _PyCode_CODE(code);
#else
    return frame->prev_instr != _PyCode_CODE(code) - 1;
#endif
}

int lf_view_frame(lf_frame *frame, int throwflag, lf_view *view)
{
    PyCodeObject *code = lf_code(frame);
    if (throwflag || code == NULL || (code->co_flags & GENERATOR_LIKE)
        || (code->co_flags & PLAIN_FUNCTION) != PLAIN_FUNCTION)
        return 0;
    if (frame->owner != FRAME_OWNED_BY_THREAD || frame->frame_obj != NULL || has_started(frame, code)) return 0;
#if V314
    view->function = SLOT_GET(frame->f_funcobj);
#elif V312
    view->function = frame->f_funcobj;
#else
    view->function = (PyObject *)frame->f_func;
#endif
    view->code = code;
    view->globals = frame->f_globals;
    view->builtins = frame->f_builtins;
    view->slots = frame->localsplus;
    view->arguments = argument_slots(code);
    return 1;
}

PyObject *lf_argument(const lf_view *view, int i) { return SLOT_GET(((slot *)view->slots)[i]); }

PyObject *lf_closure(const lf_view *view) { return ((PyFunctionObject *)view->function)->func_closure; }

int lf_fits(PyCodeObject *original, PyCodeObject *replacement)
{
    int count = argument_slots(original);
    if (count != argument_slots(replacement) || (replacement->co_flags & GENERATOR_LIKE)
        || original->co_nfreevars != replacement->co_nfreevars)
        return 0;
    PyObject *free_a = PyCode_GetFreevars(original), *free_b = PyCode_GetFreevars(replacement);
    PyObject *names_a = PyCode_GetVarnames(original), *names_b = PyCode_GetVarnames(replacement);
    int fits = free_a && free_b && names_a && names_b && PyObject_RichCompareBool(free_a, free_b, Py_EQ) == 1;
    for (int i = 0; fits && i < count; i++)
        fits = PyUnicode_Compare(PyTuple_GET_ITEM(names_a, i), PyTuple_GET_ITEM(names_b, i)) == 0;
    Py_XDECREF(free_a);
    Py_XDECREF(free_b);
    Py_XDECREF(names_a);
    Py_XDECREF(names_b);
    return fits;
}

static Py_ssize_t frame_words(const PyCodeObject *code)
{
#if V312
    return code->co_framesize;
#else
    return code->co_nlocalsplus + code->co_stacksize + (Py_ssize_t)FRAME_SPECIALS_SIZE;
#endif
}

static void set_code(lf_frame *frame, PyCodeObject *code)
{
#if V314
    _PyStackRef old = frame->f_executable;
    frame->f_executable = PyStackRef_FromPyObjectNew((PyObject *)code);
    frame->instr_ptr = _PyCode_CODE(code);
    frame->stackpointer = frame->localsplus + code->co_nlocalsplus;
    PyStackRef_CLOSE(old);
#else
    PyObject *old = (PyObject *)lf_code(frame);
    Py_INCREF(code);
#if V313
    frame->f_executable = (PyObject *)code;
    frame->instr_ptr = _PyCode_CODE(code);
#else
    frame->f_code = code;
    frame->prev_instr = _PyCode_CODE(code) - 1;
#endif
    frame->stacktop = code->co_nlocalsplus;
    Py_DECREF(old);
#endif
}

PyObject *lf_run_in_place(PyThreadState *ts, lf_frame *frame, PyCodeObject *replacement, PyObject *inputs, lf_evaluator eval,
                          int *done)
{
    PyCodeObject *original = lf_code(frame);
    Py_ssize_t words = frame_words(original), more = frame_words(replacement) - words;
    /* The frame must be the last one on the data stack: then it can grow or shrink to fit. */
    if (ts->datastack_top != (PyObject **)frame + words || more >= ts->datastack_limit - ts->datastack_top) {
        *done = 0;
        return NULL;
    }
    ts->datastack_top += more;
    for (int i = argument_slots(original); i < replacement->co_nlocalsplus; i++) frame->localsplus[i] = SLOT_NULL;
    if (inputs != NULL) frame->localsplus[argument_slots(original)] = SLOT_STEAL(inputs);
    set_code(frame, replacement);
    *done = 1;
    return lf_evaluate(ts, frame, 0, eval);
}

#if V312
static PyCodeObject *drop_code;
void lf_set_drop_code(PyCodeObject *code) { Py_XSETREF(drop_code, (PyCodeObject *)Py_NewRef((PyObject *)code)); }
#else
void lf_set_drop_code(PyCodeObject *code) { (void)code; }
#endif

void lf_drop(PyThreadState *ts, lf_frame *frame)
{
#if V312
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (int i = argument_slots(lf_code(frame)) - 1; i >= 0; i--) SLOT_CLEAR(frame->localsplus[i]);
    int done;
    PyObject *none = lf_run_in_place(ts, frame, drop_code, NULL, (lf_evaluator)_PyEval_EvalFrameDefault, &done);
    if (none == NULL) PyErr_Clear();
    Py_XDECREF(none);
    PyErr_Restore(type, value, traceback);
#else
    (void)ts; /* 3.11: _PyEval_Vector clears the frame after the hook returns */
    (void)frame;
#endif
}

PyObject *lf_run_by_call(PyThreadState *ts, lf_frame *frame, PyCodeObject *flat, PyObject *inputs)
{
    lf_view view;
    PyObject *result = NULL, *function = NULL;
    if (!lf_view_frame(frame, 0, &view)) {
        PyErr_SetString(PyExc_SystemError, "lamina_dynamo: the frame has started");
        return NULL;
    }
    function = PyFunction_New((PyObject *)flat, view.globals);
    PyObject *closure = lf_closure(&view);
    if (function != NULL && (closure == NULL || PyFunction_SetClosure(function, closure) == 0)) {
        int count = view.arguments + (inputs != NULL);
        PyObject *few[16], **arguments = count <= 16 ? few : PyMem_Malloc(count * sizeof(PyObject *));
        if (arguments == NULL) PyErr_NoMemory();
        else {
            for (int i = 0; i < view.arguments; i++) arguments[i] = lf_argument(&view, i);
            if (inputs != NULL) arguments[view.arguments] = inputs;
            result = PyObject_Vectorcall(function, arguments, count, NULL);
            if (arguments != few) PyMem_Free(arguments);
        }
    }
    Py_XDECREF(function);
    lf_drop(ts, frame);
    return result;
}

#if V312 && !V313
/* 3.12 charges 2 of 1500 C recursion units a Python call when a hook is on, whatever the recursion limit: give them
 * back, up to a depth that an 8 MB stack holds. */
#define FREE_DEPTH 3000
static _Thread_local int free_depth;
PyObject *lf_evaluate(PyThreadState *ts, lf_frame *frame, int throwflag, lf_evaluator eval)
{
    if (free_depth >= FREE_DEPTH) return eval(ts, frame, throwflag);
    ++free_depth;
    ts->c_recursion_remaining += 2;
    PyObject *result = eval(ts, frame, throwflag);
    ts->c_recursion_remaining -= 2;
    --free_depth;
    return result;
}
#else
PyObject *lf_evaluate(PyThreadState *ts, lf_frame *frame, int throwflag, lf_evaluator eval)
{
    return eval(ts, frame, throwflag);
}
#endif

lf_evaluator lf_get_evaluator(void)
{
    return (lf_evaluator)_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
}

void lf_set_evaluator(lf_evaluator eval)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), (_PyFrameEvalFunction)eval);
}

#if V312
Py_ssize_t lf_extra_index(freefunc destroy) { return PyUnstable_Eval_RequestCodeExtraIndex(destroy); }
void *lf_extra_get(PyCodeObject *code, Py_ssize_t index)
{
    void *extra = NULL;
    return PyUnstable_Code_GetExtra((PyObject *)code, index, &extra) < 0 ? NULL : extra;
}
int lf_extra_set(PyCodeObject *code, Py_ssize_t index, void *extra)
{
    return PyUnstable_Code_SetExtra((PyObject *)code, index, extra);
}
#else
Py_ssize_t lf_extra_index(freefunc destroy) { return _PyEval_RequestCodeExtraIndex(destroy); }
void *lf_extra_get(PyCodeObject *code, Py_ssize_t index)
{
    void *extra = NULL;
    return _PyCode_GetExtra((PyObject *)code, index, &extra) < 0 ? NULL : extra;
}
int lf_extra_set(PyCodeObject *code, Py_ssize_t index, void *extra)
{
    return _PyCode_SetExtra((PyObject *)code, index, extra);
}
#endif
