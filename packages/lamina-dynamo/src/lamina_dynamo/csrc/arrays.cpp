/* Reading tensors (lamina/tensor_abi.h) and NumPy arrays without calling Python. */
#include <algorithm>
#include <cstring>
#include <string>

#include "guards.h"
#include "lamina/tensor_abi.h"

namespace lamina {

/* The part of PyArrayObject that NumPy 1.x and 2.x share and promise to keep; checked against a sample when learned. */
struct NumpyArray {
    PyObject_HEAD
    char *data;
    int ndim;
    Py_ssize_t *dimensions;
    Py_ssize_t *strides;
    PyObject *base;
    PyObject *descr;
    int flags;
};

static PyTypeObject *ndarray_type = nullptr;
static std::vector<const lamina_abi *> tensor_kinds;

static const int64_t ITEM_SIZES[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1};

static const lamina_abi *tensor_kind(PyObject *value)
{
    for (const lamina_abi *kind : tensor_kinds) /* a type with the base's layout has it among its bases of layout */
        for (PyTypeObject *type = Py_TYPE(value); type != nullptr; type = type->tp_base)
            if (type == kind->base) return kind;
    return nullptr;
}

PyObject *tensor_gradient(PyObject *value)
{
    const lamina_abi *kind = tensor_kind(value);
    return kind == nullptr ? nullptr : kind->grad(value);
}

bool view_array(PyObject *value, ArrayView *view)
{
    if (tensor_kind(value) != nullptr) {
        auto *t = reinterpret_cast<lamina_tensor *>(value);
        *view = {static_cast<char *>(t->data), t->sizes, t->strides, t->offset, t->ndim, ITEM_SIZES[t->dtype], false};
        return true;
    }
    if (ndarray_type != nullptr && PyObject_TypeCheck(value, ndarray_type)) {
        auto *a = reinterpret_cast<NumpyArray *>(value);
        /* an array's item size by its strides is not known for shape (1,): ask where it is needed (byte extents) */
        PyObject *size = PyObject_GetAttrString(a->descr, "itemsize");
        if (size == nullptr) {
            PyErr_Clear();
            return false;
        }
        int64_t itemsize = PyLong_AsLongLong(size);
        Py_DECREF(size);
        *view = {a->data, reinterpret_cast<int64_t *>(a->dimensions), reinterpret_cast<int64_t *>(a->strides), 0, a->ndim,
                 itemsize, true};
        return true;
    }
    return false;
}

static bool attribute_property(PyObject *value, int property, int dim, int64_t *result)
{
    PyObject *found = PyObject_GetAttrString(value, property == 5 ? "ndim" : "shape");
    if (found != nullptr && property == 1) {
        PyObject *item = PySequence_GetItem(found, dim);
        Py_SETREF(found, item);
    }
    bool ok = found != nullptr && PyLong_Check(found) && (property == 1 || property == 5);
    if (ok) *result = PyLong_AsLongLong(found);
    Py_XDECREF(found);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return ok;
}

bool array_property(PyObject *value, int property, int dim, int64_t *result)
{
    if (property == 0) {
        if (!PyLong_Check(value)) return false;
        int overflow = 0;
        *result = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow == 0;
    }
    ArrayView view;
    if (ndarray_type != nullptr && property != 2 && PyObject_TypeCheck(value, ndarray_type)) {
        auto *a = reinterpret_cast<NumpyArray *>(value); /* spares the item size */
        view = {a->data, reinterpret_cast<int64_t *>(a->dimensions), nullptr, 0, a->ndim, 1, true};
    } else if (!view_array(value, &view))
        return attribute_property(value, property, dim, result);
    if ((property == 1 || property == 2) && (dim < 0 || dim >= view.ndim)) return false;
    switch (property) {
    case 1: *result = view.sizes[dim]; return true;
    case 2: *result = view.strides_in_bytes ? view.strides[dim] / view.itemsize : view.strides[dim]; return true;
    case 3: *result = view.storage_offset; return true;
    case 4:
        *result = 1;
        for (int i = 0; i < view.ndim; i++) *result *= view.sizes[i];
        return true;
    case 5: *result = view.ndim; return true;
    }
    return false;
}

static bool layout_is_known(PyObject *sample)
{
    auto *a = reinterpret_cast<NumpyArray *>(sample);
    PyObject *shape = PyObject_GetAttrString(sample, "shape"), *dtype = PyObject_GetAttrString(sample, "dtype");
    PyObject *strides = PyObject_GetAttrString(sample, "strides");
    bool known = shape && dtype && strides && PyTuple_Check(shape) && a->descr == dtype
        && PyTuple_GET_SIZE(shape) == a->ndim;
    for (int i = 0; known && i < a->ndim; i++)
        known = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) == a->dimensions[i]
            && PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i)) == a->strides[i];
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    Py_XDECREF(strides);
    PyErr_Clear();
    return known;
}

bool learn_ndarray(PyObject *type, PyObject *sample)
{
    if (!PyType_Check(type) || reinterpret_cast<PyTypeObject *>(type)->tp_basicsize < (Py_ssize_t)sizeof(NumpyArray)
        || !PyObject_TypeCheck(sample, reinterpret_cast<PyTypeObject *>(type)) || !layout_is_known(sample))
        return false;
    ndarray_type = reinterpret_cast<PyTypeObject *>(Py_NewRef(type));
    return true;
}

bool learn_tensor_type(PyObject *type)
{
    PyObject *capsule = PyObject_GetAttrString(type, "__lamina_abi__");
    auto *abi = capsule && PyCapsule_IsValid(capsule, LAMINA_ABI_CAPSULE)
        ? static_cast<lamina_abi *>(PyCapsule_GetPointer(capsule, LAMINA_ABI_CAPSULE))
        : nullptr;
    PyErr_Clear();
    Py_XDECREF(capsule);
    if (abi == nullptr || abi->version != LAMINA_ABI_VERSION || abi->struct_size != (int32_t)sizeof(lamina_tensor))
        return false;
    for (const lamina_abi *kind : tensor_kinds)
        if (kind->base == abi->base) return true;
    Py_INCREF(abi->base);
    tensor_kinds.push_back(abi);
    return true;
}

bool tensor_fits(PyObject *value, const TensorFacts &facts)
{
    auto *t = reinterpret_cast<lamina_tensor *>(value);
    if (t->dtype != facts.dtype || t->device != facts.device || t->ndim != (int)facts.sizes.size()
        || ((t->flags ^ facts.flag_values) & facts.flag_mask)
        || (facts.device != LAMINA_CPU && t->device_index != facts.device_index))
        return false;
    bool is_empty = false, follows = true; /* no element is reached by the strides of an empty tensor */
    for (int i = 0; i < t->ndim; i++) {
        if (facts.sizes[i] >= 0 && t->sizes[i] != facts.sizes[i]) return false;
        is_empty |= t->sizes[i] == 0;
        follows &= !facts.check_strides || facts.strides[i] < 0 || t->sizes[i] == 1 || t->strides[i] == facts.strides[i];
    }
    return is_empty || follows;
}

/* The type was checked; `dtype` is the NumPy dtype object that stands for facts.dtype. */
bool ndarray_fits(PyObject *value, const TensorFacts &facts, PyObject *dtype, int64_t itemsize)
{
    if (ndarray_type == nullptr || !PyObject_TypeCheck(value, ndarray_type)) return false;
    auto *a = reinterpret_cast<NumpyArray *>(value);
    if (a->ndim != (int)facts.sizes.size()) return false;
    bool is_empty = false, follows = true;
    for (int i = 0; i < a->ndim; i++) {
        if (facts.sizes[i] >= 0 && a->dimensions[i] != facts.sizes[i]) return false;
        is_empty |= a->dimensions[i] == 0;
        follows &= !facts.check_strides || facts.strides[i] < 0 || a->dimensions[i] == 1
            || a->strides[i] == facts.strides[i] * itemsize;
    }
    if (!is_empty && !follows) return false;
    if (a->descr == dtype) return true;
    int equal = PyObject_RichCompareBool(a->descr, dtype, Py_EQ);
    PyErr_Clear();
    return equal == 1;
}

/* First and one past the last byte; false when there is no memory to overlap. */
static bool extent(PyObject *value, uintptr_t *from, uintptr_t *to, bool *readable)
{
    ArrayView view;
    *readable = view_array(value, &view);
    if (!*readable || view.data == nullptr) return false;
    int64_t low = 0, high = view.itemsize;
    for (int d = 0; d < view.ndim; d++) {
        if (view.sizes[d] == 0) return false;
        int64_t step = (view.sizes[d] - 1) * view.strides[d] * (view.strides_in_bytes ? 1 : view.itemsize);
        (step < 0 ? low : high) += step;
    }
    *from = reinterpret_cast<uintptr_t>(view.data) + low;
    *to = reinterpret_cast<uintptr_t>(view.data) + high;
    return true;
}

bool no_overlap(const Relation &relation, PyObject *const *regs)
{
    static thread_local std::vector<std::pair<uintptr_t, uintptr_t>> extents;
    extents.clear();
    for (int r : relation.regs) {
        uintptr_t from, to;
        bool readable;
        if (extent(regs[r], &from, &to, &readable)) extents.emplace_back(from, to);
        else if (!readable) return false;
    }
    return all_apart(
        relation.order, extents.size(), [](int32_t a, int32_t b) { return extents[a] < extents[b]; },
        [](int32_t a, int32_t b) { return extents[a].second <= extents[b].first; });
}

bool all_distinct(const Relation &relation, PyObject *const *regs)
{
    if (relation.regs.size() <= 8) {
        for (size_t a = 0; a < relation.regs.size(); a++)
            for (size_t b = 0; b < a; b++)
                if (regs[relation.regs[a]] == regs[relation.regs[b]]) return false;
        return true;
    }
    auto at = [&](int32_t k) { return regs[relation.regs[k]]; };
    auto less = [&](int32_t a, int32_t b) { return at(a) < at(b); };
    return all_apart(relation.order, relation.regs.size(), less, less);
}

bool overlap_fits(const Relation &relation, int64_t distance, PyObject *const *regs)
{
    ArrayView a, b;
    return view_array(regs[relation.regs[0]], &a) && view_array(regs[relation.regs[1]], &b) && b.data - a.data == distance;
}

}  // namespace lamina
