/* Small C types of the run time: the resume trampoline, callables that switch capture on or off, readers for emitted code. */
#include "hook.h"

#include <structmember.h>

/* In a public header up to 3.12, exported all along. */
extern "C" PyAPI_FUNC(void) _PyTraceback_Add(const char *function, const char *file, int line);

namespace lamina {

/* ---- the trampoline of resume functions ---- */

/* A tuple (function, *arguments): capture reads it like one. */
static PyTypeObject TailType = {PyVarObject_HEAD_INIT(nullptr, 0)};

/* tail(function, *args): what a resume function that breaks again returns to its trampoline. */
static PyObject *make_tail(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    PyObject *tail = TailType.tp_alloc(&TailType, n);
    if (tail == nullptr) return nullptr;
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(tail, i, Py_NewRef(args[i]));
    return tail;
}

/* Go on with what a resume function hands back, so that the stack does not grow; takes the reference. */
static PyObject *run_tails(PyObject *result)
{
    while (result != nullptr && Py_TYPE(result) == &TailType) {
        PyObject **values = &PyTuple_GET_ITEM(result, 0);
        PyObject *next = PyObject_Vectorcall(values[0], values + 1, PyTuple_GET_SIZE(result) - 1, nullptr);
        Py_SETREF(result, next);
    }
    return result;
}

/* call_resume(function, *args) */
static PyObject *call_resume(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "call_resume(function, *args) needs a function");
        return nullptr;
    }
    return run_tails(PyObject_Vectorcall(args[0], args + 1, n - 1, nullptr));
}

/* finish_resume(result): what the resume function of a callee returned, its tails run. */
static PyObject *finish_resume(PyObject *, PyObject *result) { return run_tails(Py_NewRef(result)); }

/* ---- callables that set what the thread captures with ---- */

struct Switch {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *callback; /* NULL: capture off inside */
    PyObject *dict, *weakrefs;
    long owner;
};

static PyObject *switch_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    auto *s = reinterpret_cast<Switch *>(self);
    /* While the compiler runs, what it calls runs plainly. */
    PyObject *callback = capture.compiling ? nullptr : s->callback;
    if (callback == nullptr && capture.callback == nullptr) return PyObject_Vectorcall(s->function, args, nargs, names);
    CaptureScope scope(callback, s->owner);
    PyObject *function = Py_NewRef(s->function);
    PyObject *result = PyObject_Vectorcall(function, args, nargs, names);
    Py_DECREF(function);
    return result;
}

static int switch_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    static const char *names[] = {"function", "callback", "owner", nullptr};
    auto *s = reinterpret_cast<Switch *>(self);
    PyObject *function, *callback = Py_None;
    long owner = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|Ol", const_cast<char **>(names), &function, &callback, &owner))
        return -1;
    if (!PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError, "expected a callable, got %.200s", Py_TYPE(function)->tp_name);
        return -1;
    }
    s->vectorcall = switch_call;
    Py_XSETREF(s->function, Py_NewRef(function));
    Py_XSETREF(s->callback, callback == Py_None ? nullptr : Py_NewRef(callback));
    s->owner = owner;
    return 0;
}

static int switch_traverse(PyObject *self, visitproc visit, void *arg)
{
    auto *s = reinterpret_cast<Switch *>(self);
    Py_VISIT(s->function);
    Py_VISIT(s->callback);
    Py_VISIT(s->dict);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int switch_clear(PyObject *self)
{
    auto *s = reinterpret_cast<Switch *>(self);
    Py_CLEAR(s->function);
    Py_CLEAR(s->callback);
    Py_CLEAR(s->dict);
    return 0;
}

static void switch_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (reinterpret_cast<Switch *>(self)->weakrefs) PyObject_ClearWeakRefs(self);
    switch_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *switch_get(PyObject *self, PyObject *instance, PyObject *)
{
    return instance == nullptr || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyObject *switch_call_slot(PyObject *self, PyObject *args, PyObject *keywords)
{
    return PyVectorcall_Call(self, args, keywords);
}

static PyMemberDef switch_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Switch, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Switch, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Switch, weakrefs), READONLY, nullptr},
    {"function", T_OBJECT_EX, offsetof(Switch, function), READONLY, "What is called."},
    {nullptr, 0, 0, 0, nullptr},
};
static PyGetSetDef switch_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
static PyType_Slot switch_slots[] = {
    {Py_tp_init, reinterpret_cast<void *>(switch_init)},
    {Py_tp_new, reinterpret_cast<void *>(PyType_GenericNew)},
    {Py_tp_dealloc, reinterpret_cast<void *>(switch_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void *>(switch_traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(switch_clear)},
    {Py_tp_call, reinterpret_cast<void *>(switch_call_slot)},
    {Py_tp_descr_get, reinterpret_cast<void *>(switch_get)},
    {Py_tp_members, switch_members},
    {Py_tp_getset, switch_getset},
    {0, nullptr},
};
static PyType_Spec switch_spec = {
    "lamina_dynamo._core.Switch", sizeof(Switch), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, switch_slots,
};
static PyObject *SwitchType;

/* uncaptured(callable): the same callable, with capture off while it runs. */
static PyObject *uncaptured(PyObject *, PyObject *callable) { return PyObject_CallOneArg(SwitchType, callable); }

/* ---- readers that emitted code calls ---- */

static PyObject *type_lookup(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !PyType_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "type_lookup(type, name)");
        return nullptr;
    }
    PyObject *found = _PyType_Lookup(reinterpret_cast<PyTypeObject *>(args[0]), args[1]);
    if (found == nullptr && !PyErr_Occurred()) PyErr_SetObject(PyExc_AttributeError, args[1]);
    return Py_XNewRef(found);
}

/* special_method(object, name): the method of the object's class, bound, as `with` looks it up. */
static PyObject *special_method(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !PyUnicode_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "special_method(object, name)");
        return nullptr;
    }
    PyTypeObject *type = Py_TYPE(args[0]);
    PyObject *found = _PyType_Lookup(type, args[1]);
    if (found == nullptr) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the context manager protocol (missed %U method)",
                         type->tp_name, args[1]);
        return nullptr;
    }
    Py_INCREF(found);
    descrgetfunc bind = Py_TYPE(found)->tp_descr_get;
    if (bind == nullptr) return found;
    PyObject *bound = bind(found, args[0], reinterpret_cast<PyObject *>(type));
    Py_DECREF(found);
    return bound;
}

/* super_lookup(type, (weak reference to a class, name)) */
static PyObject *super_entry(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) != 2 || !PyWeakref_Check(PyTuple_GET_ITEM(args[1], 0))) {
        PyErr_SetString(PyExc_TypeError, "super_lookup(type, (weak reference to a class, name))");
        return nullptr;
    }
    PyObject *found = super_lookup(args[0], args[1]);
    if (found == nullptr) PyErr_SetObject(PyExc_AttributeError, PyTuple_GET_ITEM(args[1], 1));
    return Py_XNewRef(found);
}

static PyObject *dict_part(PyObject *dict, bool want_values)
{
    PyObject *entries = dict_entries(dict, want_values);
    if (entries == nullptr && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "expected a dict");
    return entries;
}

static PyObject *dict_keys(PyObject *, PyObject *dict) { return dict_part(dict, false); }
static PyObject *dict_values(PyObject *, PyObject *dict) { return dict_part(dict, true); }

static PyObject *tensor_property(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    static const char *names[] = {"", "size", "stride", "storage_offset", "numel", "ndim"};
    int64_t result;
    for (int p = 1; n == 3 && p < 6; p++)
        if (PyUnicode_Check(args[1]) && PyUnicode_CompareWithASCIIString(args[1], names[p]) == 0
            && array_property(args[0], p, (int)PyLong_AsLong(args[2]), &result))
            return PyLong_FromLongLong(result);
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "tensor_property: can not read %R", n == 3 ? args[1] : Py_None);
    return nullptr;
}

static PyObject *new_cell(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    return PyCell_New(n > 0 ? args[0] : nullptr);
}

static PyObject *new_function(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !PyCode_Check(args[0]) || !PyDict_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "new_function(code, globals, closure)");
        return nullptr;
    }
    PyObject *function = PyFunction_New(args[0], args[1]);
    if (function != nullptr && args[2] != Py_None && PyFunction_SetClosure(function, args[2]) < 0) Py_CLEAR(function);
    return function;
}

/* add_traceback(exception, ((name, file, line), ...)): give an exception that was raised while tracing the traceback it
 * would have, innermost entry first. Handlers need one: WITH_EXCEPT_START crashes without before 3.13. */
static PyObject *add_traceback(PyObject *, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !PyExceptionInstance_Check(args[0]) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "add_traceback(exception, entries)");
        return nullptr;
    }
    PyObject *exception = args[0], *type, *value, *traceback;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); i++) {
        const char *name, *file;
        int line;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(args[1], i), "ssi", &name, &file, &line)) return nullptr;
        PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(exception)), Py_NewRef(exception),
                      PyException_GetTraceback(exception));
        _PyTraceback_Add(name, file, line);
        PyErr_Fetch(&type, &value, &traceback);
        if (value == exception && traceback != nullptr) PyException_SetTraceback(exception, traceback);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    return Py_NewRef(exception);
}

/* has_vectorcall(type): a heap subclass does not inherit the flag before 3.12; its call is this file's. */
static PyObject *has_vectorcall(PyObject *, PyObject *type)
{
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)SwitchType)) {
        PyErr_SetString(PyExc_TypeError, "has_vectorcall(subclass of Switch)");
        return nullptr;
    }
    ((PyTypeObject *)type)->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified((PyTypeObject *)type);
    return Py_NewRef(type);
}

/* handled_exception(): what `except` blocks of this thread handle now, or None. */
static PyObject *handled_exception(PyObject *, PyObject *const *, Py_ssize_t)
{
    PyObject *handled = PyErr_GetHandledException();
    return handled != nullptr ? handled : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"handled_exception", reinterpret_cast<PyCFunction>(handled_exception), METH_FASTCALL,
     "handled_exception()\n\nThe exception that is being handled, or None."},
    {"add_traceback", reinterpret_cast<PyCFunction>(add_traceback), METH_FASTCALL,
     "add_traceback(exception, entries)\n\nAdd (name, file, line) entries to its traceback, innermost first."},
    {"has_vectorcall", has_vectorcall, METH_O, "has_vectorcall(type)\n\nClass decorator for subclasses of Switch."},
    {"tail", reinterpret_cast<PyCFunction>(make_tail), METH_FASTCALL,
     "tail(function, *args)\n\nWhat a resume function returns so that its trampoline calls `function` next."},
    {"call_resume", reinterpret_cast<PyCFunction>(call_resume), METH_FASTCALL,
     "call_resume(function, *args)\n\nCall a resume function, and those it hands back, without growing the stack."},
    {"finish_resume", finish_resume, METH_O,
     "finish_resume(result)\n\nThe result of a resume function, after running those it hands back."},
    {"uncaptured", uncaptured, METH_O, "uncaptured(callable)\n\nThe callable, with no frame captured while it runs."},
    {"type_lookup", reinterpret_cast<PyCFunction>(type_lookup), METH_FASTCALL,
     "type_lookup(type, name)\n\nWhat the type or its bases hold under the name, no descriptor called."},
    {"special_method", reinterpret_cast<PyCFunction>(special_method), METH_FASTCALL,
     "special_method(object, name)\n\nThe method of the object's class, bound, as `with` looks it up."},
    {"super_lookup", reinterpret_cast<PyCFunction>(super_entry), METH_FASTCALL,
     "super_lookup(type, (weak reference to a class, name))\n\nWhat the classes behind it in the mro hold, raw."},
    {"dict_keys", dict_keys, METH_O, "dict_keys(dict)\n\nAll keys, as a tuple."},
    {"dict_values", dict_values, METH_O, "dict_values(dict)\n\nAll values, as a tuple."},
    {"tensor_property", reinterpret_cast<PyCFunction>(tensor_property), METH_FASTCALL,
     "tensor_property(array, name, dim)\n\nsize, stride, storage_offset, numel or ndim as an int."},
    {"new_cell", reinterpret_cast<PyCFunction>(new_cell), METH_FASTCALL, "new_cell([value])\n\nA new cell."},
    {"new_function", reinterpret_cast<PyCFunction>(new_function), METH_FASTCALL,
     "new_function(code, globals, closure)\n\nA function; closure is a tuple of cells or None."},
    {nullptr, nullptr, 0, nullptr},
};

int add_objects(PyObject *module)
{
    TailType.tp_name = "lamina_dynamo._core.Tail";
    TailType.tp_base = &PyTuple_Type;
    TailType.tp_flags = Py_TPFLAGS_DEFAULT;
    if (PyType_Ready(&TailType) < 0 || PyModule_AddObjectRef(module, "Tail", (PyObject *)&TailType) < 0) return -1;
    SwitchType = PyType_FromSpec(&switch_spec);
    if (SwitchType == nullptr || PyModule_AddObjectRef(module, "Switch", SwitchType) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}

}  // namespace lamina
