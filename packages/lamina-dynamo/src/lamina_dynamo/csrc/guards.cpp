/* Evaluation of guard programs. */
#include "guards.h"

#include <algorithm>
#include <cstring>

namespace lamina {

bool tensor_fits(PyObject *value, const TensorFacts &facts);
bool ndarray_fits(PyObject *value, const TensorFacts &facts, PyObject *dtype, int64_t itemsize);
bool all_distinct(const Relation &relation, PyObject *const *regs);
bool no_overlap(const Relation &relation, PyObject *const *regs);
bool overlap_fits(const Relation &relation, int64_t distance, PyObject *const *regs);
bool shape_holds(const ShapeCode &shape, PyObject *const *registers);

/* A guard whose Python code fails does not hold. An interrupt is none of its failures: it comes again, in Python. */
static void forget_error()
{
    const bool interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
    PyErr_Clear();
    if (interrupted) PyErr_SetInterrupt();
}

static inline PyObject *weak_target(PyObject *reference)
{
    return reinterpret_cast<PyWeakReference *>(reference)->wr_object;
}

/* The value is the remembered object, and that object was never freed. */
static inline bool is_identical(const Instruction &i, PyObject *value)
{
    return value == i.object && (i.weak == nullptr || weak_target(i.weak) == value);
}

static bool same_float(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

static bool same_parts(PyObject *a, PyObject *b, std::initializer_list<const char *> names)
{
    for (const char *name : names) {
        PyObject *x = PyObject_GetAttrString(a, name), *y = PyObject_GetAttrString(b, name);
        bool same = x && y && same_constant(x, y);
        Py_XDECREF(x);
        Py_XDECREF(y);
        if (!same) return false;
    }
    return true;
}

bool same_constant(PyObject *a, PyObject *b)
{
    if (a == b) return true;
    PyTypeObject *type = Py_TYPE(a);
    if (type != Py_TYPE(b)) return false;
    if (type == &PyFloat_Type) {
        double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return same_float(x, y) || (x != x && y != y);
    }
    if (type == &PyTuple_Type) {
        Py_ssize_t n = PyTuple_GET_SIZE(a);
        if (n != PyTuple_GET_SIZE(b)) return false;
        for (Py_ssize_t k = 0; k < n; k++)
            if (!same_constant(PyTuple_GET_ITEM(a, k), PyTuple_GET_ITEM(b, k))) return false;
        return true;
    }
    if (type == &PyComplex_Type) {
        Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
        return same_float(x.real, y.real) && same_float(x.imag, y.imag);
    }
    if (type == &PySlice_Type || type == &PyRange_Type) return same_parts(a, b, {"start", "stop", "step"});
    if (type != &PyLong_Type && type != &PyUnicode_Type && type != &PyBytes_Type && type != &PyFrozenSet_Type)
        return false;
    int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0) forget_error();
    return equal == 1;
}

static Py_ssize_t raw_length(PyObject *value)
{
    if (PyTuple_Check(value) || PyList_Check(value)) return Py_SIZE(value);
    if (PyDict_Check(value)) return PyDict_GET_SIZE(value);
    if (PyAnySet_Check(value)) return PySet_GET_SIZE(value);
    if (PyUnicode_Check(value)) return PyUnicode_GET_LENGTH(value);
    if (PyBytes_Check(value)) return PyBytes_GET_SIZE(value);
    Py_ssize_t n = PyObject_Size(value); /* deque and the like */
    if (n < 0) forget_error();
    return n;
}

/* Instance dict, borrowed in effect (the instance keeps it); NULL when there is none. */
static PyObject *instance_dict(PyObject *value)
{
    PyObject *dict = PyObject_GenericGetDict(value, nullptr);
    if (dict == nullptr) {
        forget_error();
        return nullptr;
    }
    Py_DECREF(dict);
    return dict;
}

static PyObject *dict_get(PyObject *dict, PyObject *key)
{
    if (dict == nullptr || !PyDict_Check(dict)) return nullptr;
    PyObject *found = PyDict_GetItemWithError(dict, key);
    if (found == nullptr) forget_error();
    return found;
}

static PyObject *tuple_get(PyObject *tuple, int64_t index)
{
    return tuple != nullptr && PyTuple_Check(tuple) && index < PyTuple_GET_SIZE(tuple) ? PyTuple_GET_ITEM(tuple, index)
                                                                                       : nullptr;
}

/* All keys or values, as a new tuple: one walk for however many entries are read. */
PyObject *dict_entries(PyObject *dict, bool want_values)
{
    PyObject *entries = PyDict_Check(dict) ? PyTuple_New(PyDict_GET_SIZE(dict)) : nullptr;
    Py_ssize_t at = 0, n = 0;
    PyObject *key, *value;
    while (entries != nullptr && n < PyTuple_GET_SIZE(entries) && PyDict_Next(dict, &at, &key, &value))
        PyTuple_SET_ITEM(entries, n++, Py_NewRef(want_values ? value : key));
    return entries;
}

static PyObject *function_part(const Instruction &i, PyObject *value)
{
    if (!PyFunction_Check(value)) return nullptr;
    auto *function = reinterpret_cast<PyFunctionObject *>(value);
    switch (i.op) {
    case Op::FunctionCode: return function->func_code;
    case Op::FunctionGlobals: return function->func_globals;
    case Op::FunctionDefault: return tuple_get(function->func_defaults, i.number);
    case Op::FunctionKwDefault: return dict_get(function->func_kwdefaults, i.object);
    default: return tuple_get(function->func_closure, i.number);
    }
}

/* What the classes behind a class in the mro of `type` hold under a name; `where` is (weak reference to the class, name). */
PyObject *super_lookup(PyObject *type, PyObject *where)
{
    PyObject *mro = PyType_Check(type) ? reinterpret_cast<PyTypeObject *>(type)->tp_mro : nullptr;
    if (mro == nullptr) return nullptr;
    PyObject *start = weak_target(PyTuple_GET_ITEM(where, 0)), *name = PyTuple_GET_ITEM(where, 1);
    bool is_behind = false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(mro); k++) {
        auto *base = reinterpret_cast<PyTypeObject *>(PyTuple_GET_ITEM(mro, k));
        if (!is_behind) {
            is_behind = reinterpret_cast<PyObject *>(base) == start;
            continue;
        }
#if PY_VERSION_HEX >= 0x030C0000
        PyObject *table = PyType_GetDict(base); /* built-in types have one per interpreter */
        Py_XDECREF(table);                      /* the type keeps it */
#else
        PyObject *table = base->tp_dict;
#endif
        PyObject *found = dict_get(table, name);
        if (found != nullptr) return found;
    }
    return nullptr;
}

/* A borrowed value, or a new reference with *owned set; NULL when the step does not exist. */
static PyObject *fetch(const Instruction &i, const lf_view &view, PyObject *const *regs, bool *owned)
{
    PyObject *value = i.src >= 0 ? regs[i.src] : nullptr, *found = nullptr;
    switch (i.op) {
    case Op::Local: return lf_argument(&view, (int)i.number);
    case Op::Global: return dict_get(view.globals, i.object);
    case Op::Builtin: return dict_get(view.builtins, i.object);
    case Op::FreeCell: return tuple_get(lf_closure(&view), i.number);
    case Op::CellContents: return PyCell_Check(value) ? PyCell_GET(value) : nullptr;
    case Op::InstanceAttr: return dict_get(instance_dict(value), i.object);
    case Op::TypeAttr:
        return PyType_Check(value) ? _PyType_Lookup(reinterpret_cast<PyTypeObject *>(value), i.object) : nullptr;
    case Op::SuperAttr: return super_lookup(value, i.object);
    case Op::Type: return reinterpret_cast<PyObject *>(Py_TYPE(value));
    case Op::Item:
        if (PyTuple_Check(value)) return tuple_get(value, i.number);
        return PyList_Check(value) && i.number < PyList_GET_SIZE(value) ? PyList_GET_ITEM(value, i.number) : nullptr;
    case Op::DictItem: return dict_get(value, i.object);
    case Op::Grad: return tensor_gradient(value);
    case Op::DictKeys: found = dict_entries(value, false); break;
    case Op::DictValues: found = dict_entries(value, true); break;
    case Op::FunctionCode:
    case Op::FunctionGlobals:
    case Op::FunctionDefault:
    case Op::FunctionKwDefault:
    case Op::FunctionCell: return function_part(i, value);
    case Op::MethodFunction: return PyMethod_Check(value) ? PyMethod_GET_FUNCTION(value) : nullptr;
    case Op::MethodSelf: return PyMethod_Check(value) ? PyMethod_GET_SELF(value) : nullptr;
    case Op::Const: return i.object;
    case Op::Weak: found = weak_target(i.object); return found == Py_None ? nullptr : found;
    case Op::Module: return dict_get(PyImport_GetModuleDict(), i.object);
    case Op::Attr: found = PyObject_GetAttr(value, i.object); break;
    case Op::GetItem: found = PyObject_GetItem(value, i.object); break;
    case Op::TensorProperty: {
        int64_t number;
        if (array_property(value, (int)(i.number >> 32), (int)(i.number & 0xffffffff), &number))
            found = PyLong_FromLongLong(number);
        break;
    }
    default: return nullptr;
    }
    if (found == nullptr) forget_error();
    *owned = found != nullptr;
    return found;
}

static bool has_attribute(const Instruction &i, PyObject *value)
{
    if (i.number & 2) return dict_get(instance_dict(value), i.object) != nullptr;
    PyObject *found = PyObject_GetAttr(value, i.object);
    if (found == nullptr) forget_error();
    Py_XDECREF(found);
    return found != nullptr;
}

/* `object` is a tuple of (key, weak reference or None). */
static bool keys_fit(const Instruction &i, PyObject *dict)
{
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(i.object)) return false;
    Py_ssize_t at = 0, n = 0;
    PyObject *key;
    while (PyDict_Next(dict, &at, &key, nullptr)) {
        PyObject *wanted = PyTuple_GET_ITEM(i.object, n++);
        if (wanted == key && PyUnicode_CheckExact(key)) continue; /* names are interned: most keys end here */
        if (PyWeakref_Check(wanted) ? weak_target(wanted) != key : !same_constant(wanted, key)) return false;
    }
    return true;
}

static bool ambient_fits(const Instruction &i)
{
    if (i.number) { /* an int cell: `weak` is not used, `object` the expected int, src unused, extra the value */
        auto *cell = static_cast<int32_t *>(PyCapsule_GetPointer(PyTuple_GET_ITEM(i.object, 0), "lamina.int_cell"));
        return cell != nullptr && *cell == i.extra;
    }
    PyObject *now = PyObject_CallNoArgs(PyTuple_GET_ITEM(i.object, 0));
    if (now == nullptr) {
        forget_error();
        return false;
    }
    PyObject *wanted = PyTuple_GET_ITEM(i.object, 1);
    bool same = PyWeakref_Check(wanted) ? weak_target(wanted) == now : same_constant(wanted, now);
    Py_DECREF(now);
    return same;
}

static bool python_check(const Instruction &i, PyObject *value)
{
    PyObject *answer = PyObject_CallOneArg(i.object, value);
    int truth = answer == nullptr ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (truth < 0) forget_error();
    return truth == 1;
}

static bool code_fits(const Instruction &i, PyObject *value)
{
    if (PyMethod_Check(value)) value = PyMethod_GET_FUNCTION(value);
    return PyFunction_Check(value) && is_identical(i, reinterpret_cast<PyFunctionObject *>(value)->func_code);
}

static bool check(const GuardProgram &p, const Instruction &i, const lf_view &view, PyObject *const *regs)
{
    PyObject *value = i.src >= 0 ? regs[i.src] : nullptr;
    switch (i.op) {
    case Op::CheckId: return is_identical(i, value);
    case Op::CheckType: return is_identical(i, reinterpret_cast<PyObject *>(Py_TYPE(value)));
    case Op::CheckNone: return (value == Py_None) == (i.number != 0);
    case Op::CheckCode: return code_fits(i, value);
    case Op::CheckCell: return PyCell_Check(value) && (PyCell_GET(value) != nullptr) == (i.number != 0);
    case Op::CheckLength: return raw_length(value) == i.number;
    case Op::CheckEquals: return same_constant(i.object, value);
    case Op::CheckTensor:
        return is_identical(i, reinterpret_cast<PyObject *>(Py_TYPE(value))) && tensor_fits(value, p.tensors[i.extra]);
    case Op::CheckArray: /* a CheckType stands before it; `object` is the dtype */
        return ndarray_fits(value, p.tensors[i.extra], i.object, i.number);
    case Op::CheckDictHas: return PyDict_Check(value) && (dict_get(value, i.object) != nullptr) == (i.number != 0);
    case Op::CheckDictKeys: return keys_fit(i, value);
    case Op::CheckNameAbsent: return dict_get(view.globals, i.object) == nullptr;
    case Op::CheckAttr: return has_attribute(i, value) == ((i.number & 1) != 0);
    case Op::CheckAmbient: return ambient_fits(i);
    case Op::CheckSame: return regs[p.relations[i.extra].regs[0]] == regs[p.relations[i.extra].regs[1]];
    case Op::CheckDistinct: return all_distinct(p.relations[i.extra], regs);
    case Op::CheckNoOverlap: return no_overlap(p.relations[i.extra], regs);
    case Op::CheckOverlap: return overlap_fits(p.relations[i.extra], i.number, regs);
    case Op::CheckShape: return shape_holds(p.shapes[i.extra], regs);
    case Op::CheckPython: return python_check(i, value);
    default: return false;
    }
}

static PyObject *tuple_of(const std::vector<int> &registers, PyObject *const *regs)
{
    PyObject *values = PyTuple_New((Py_ssize_t)registers.size());
    for (size_t k = 0; values != nullptr && k < registers.size(); k++)
        PyTuple_SET_ITEM(values, k, Py_NewRef(regs[registers[k]]));
    if (values == nullptr) forget_error();
    return values;
}

int GuardProgram::evaluate(const lf_view &view, PyObject **values) const
{
    PyObject *few[96];
    PyObject *few_owned[192]; /* a register's own reference, and one more while it is held */
    std::vector<PyObject *> many;
    PyObject **regs = few, **owned = few_owned;
    if (registers > 96) {
        many.resize(3 * registers);
        regs = many.data();
        owned = regs + registers;
    }
    int count = 0, failed = -1;
    for (size_t k = 0; k < code.size(); k++) {
        const Instruction &i = code[k];
        if (k == first_python) {
            for (int reg : held) owned[count++] = Py_NewRef(regs[reg]);
            if (inputs_are_early && !inputs.empty() && (*values = tuple_of(inputs, regs)) == nullptr) {
                failed = i.guard;
                break;
            }
        }
        if (i.op < Op::CheckId) {
            bool is_new = false;
            PyObject *value = fetch(i, view, regs, &is_new);
            if (value == nullptr) {
                failed = i.guard;
                break;
            }
            if (k >= first_python && !is_new) {
                Py_INCREF(value);
                is_new = true;
            }
            if (is_new) owned[count++] = value;
            regs[i.dst] = value;
        } else if (!check(*this, i, view, regs)) {
            failed = i.guard;
            break;
        }
    }
    if (failed < 0 && !inputs.empty() && !inputs_are_early && (*values = tuple_of(inputs, regs)) == nullptr) failed = 0;
    if (failed >= 0) Py_CLEAR(*values);
    while (count > 0) Py_DECREF(owned[--count]);
    return failed;
}

}  // namespace lamina
