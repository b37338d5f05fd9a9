/* Guard programs: straight-line code over registers that says whether a frame fits a cache entry.
 *
 * An instruction fetches a value into a register or checks one. Reads shared by several guards are fetched once. Nothing
 * but `attr`, `get_item`, ambient and Python checks can run Python code; a program without those holds borrowed references only.
 * What it has fetched need not be fetched again: values that the compiled code needs are handed over (`inputs`).
 */
#pragma once
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "_frame.h"

namespace lamina {

enum class Op : uint8_t {
    Local, Global, Builtin, FreeCell, CellContents, Attr, InstanceAttr, TypeAttr, Type, Item, DictItem, DictKeys, GetItem,
    FunctionCode, FunctionGlobals, FunctionDefault, FunctionKwDefault, FunctionCell, MethodFunction, MethodSelf, Const, Weak,
    Module, TensorProperty, DictValues, SuperAttr, Grad,
    /* checks, in the order of lamina_dynamo.guard.GuardKind */
    CheckId = 32, CheckType, CheckNone, CheckCode, CheckCell, CheckLength, CheckEquals, CheckTensor, CheckDictHas,
    CheckDictKeys, CheckNameAbsent, CheckAttr, CheckAmbient, CheckArray, CheckSame, CheckDistinct, CheckNoOverlap,
    CheckOverlap, CheckShape, CheckPython
};

/* How a tensor must look; sizes and strides of -1 are not checked. */
struct TensorFacts {
    std::vector<int64_t> sizes, strides;
    int dtype = -1, device = 0, device_index = 0;
    bool check_strides = false;
    uint32_t flag_mask = 0, flag_values = 0;
};

/* A condition over integers, in postfix form. */
struct ShapeInput { int reg; int property; int dim; };
struct ShapeCode { std::vector<ShapeInput> inputs; std::vector<std::pair<int, int64_t>> code; int depth = 0; };

/* Values in registers that are compared with each other. */
struct Relation {
    std::vector<int> regs;
    mutable std::vector<int32_t> order; /* how the values lay in memory at the last call, see `all_apart` */
};

/* Programs of large models have thousands of these: what few of them need is elsewhere. */
struct Instruction {
    Op op;
    int32_t dst = -1, src = -1;
    int32_t guard = 0;           /* index of the guard this belongs to */
    int32_t extra = -1;          /* index into `tensors`, `shapes` or `relations` */
    int64_t number = 0;
    PyObject *object = nullptr;  /* owned: a name, key, constant, identity (borrowed address: see `weak`) */
    PyObject *weak = nullptr;    /* owned weak reference that keeps `object`'s address from meaning another object */
};

class GuardProgram {
  public:
    GuardProgram() = default;
    GuardProgram(const GuardProgram &) = delete;
    ~GuardProgram();

    std::vector<Instruction> code;
    std::vector<TensorFacts> tensors;
    std::vector<ShapeCode> shapes;
    std::vector<Relation> relations;
    std::vector<int> inputs; /* registers whose values the compiled code takes */
    int registers = 0;
    bool runs_python = false;
    /* Values are borrowed up to the first instruction that may run Python, which may free them; from there on the program holds
     * those it still needs, of the `early` registers filled before. */
    size_t first_python = SIZE_MAX;
    int early = 0;
    std::vector<int> held;
    bool inputs_are_early = false; /* then the tuple of inputs is made there, and holds them */

    /* -1 when all guards hold, else the index of one that does not. Never leaves an exception set. When all hold and there
     * are inputs, *values is a new tuple of them. */
    int evaluate(const lf_view &view, PyObject **values) const;
    void hold(int reg);
    void set_inputs(std::vector<int> taken); /* after the last instruction */
};

/* What a tensor or array looks like, read without Python calls. */
struct ArrayView {
    char *data;
    const int64_t *sizes;
    const int64_t *strides; /* in elements, or in bytes when `strides_in_bytes` */
    int64_t storage_offset;
    int ndim;
    int64_t itemsize;
    bool strides_in_bytes;
};
bool view_array(PyObject *value, ArrayView *view);
/* Property codes of ShapeInput: 0 the register holds an int; size, stride, storage_offset, numel, ndim. */
bool array_property(PyObject *value, int property, int dim, int64_t *result);

/* Learn numpy.ndarray, after checking that the C layout of `sample` is the one this file knows. False: read it through attributes. */
bool learn_ndarray(PyObject *type, PyObject *sample);
/* Learn a tensor type from its `__lamina_abi__` capsule; false when it has none. Sets no exception. */
bool learn_tensor_type(PyObject *type);

/* Whether there is an order of `count` values in which each is apart from the next. In most calls it is the remembered order of
 * the last call, so that one pass tells; otherwise they are sorted by `less`. Both compare values by their numbers. */
template <typename Less, typename Apart> bool all_apart(std::vector<int32_t> &order, size_t count, Less less, Apart apart)
{
    auto holds = [&] {
        for (size_t k = 1; k < order.size(); k++)
            if (!apart(order[k - 1], order[k])) return false;
        return order.size() == count;
    };
    if (holds()) return true;
    order.resize(count);
    for (size_t k = 0; k < count; k++) order[k] = (int32_t)k;
    std::sort(order.begin(), order.end(), less);
    return holds();
}

/* The tensor's gradient or None, borrowed; NULL when the value is no learned tensor. */
PyObject *tensor_gradient(PyObject *value);

bool same_constant(PyObject *a, PyObject *b);

PyObject *super_lookup(PyObject *type, PyObject *where);
PyObject *dict_entries(PyObject *dict, bool want_values);

}  // namespace lamina
