/* The module lamina_dynamo._core: guard programs, the cache of a code object, the hook. Functions of objects.cpp beside. */
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "hook.h"

namespace py = pybind11;
using namespace lamina;

static PyObject *take(py::object value) { return value.is_none() ? nullptr : value.release().ptr(); }

/* op, dst, src, guard, number, object or None, weak reference or None, registers, extra */
static void add_instruction(GuardProgram &program, int op, int dst, int src, int guard, int64_t number, py::object object,
                            py::object weak, std::vector<int> regs, int extra, bool none_is_object)
{
    Instruction i;
    i.op = static_cast<Op>(op);
    i.dst = dst;
    i.src = src;
    i.guard = guard;
    i.number = number;
    i.weak = take(std::move(weak));
    /* with a weak reference only the address is kept: Identity guards must not keep their object alive */
    if (i.weak != nullptr) i.object = object.ptr();
    else i.object = none_is_object ? object.release().ptr() : take(std::move(object));
    i.extra = extra;
    bool is_relation = !regs.empty();
    if (is_relation) {
        i.extra = (int)program.relations.size();
        program.relations.push_back({std::move(regs), {}});
    }
    bool may_run_python = i.op == Op::Attr || i.op == Op::GetItem || i.op == Op::CheckPython
        || (i.op == Op::CheckAmbient && number == 0) || (i.op == Op::CheckAttr && !(number & 2));
    if (may_run_python && !program.runs_python) {
        program.runs_python = true;
        program.first_python = program.code.size();
        program.early = program.registers;
    }
    if (program.runs_python) {
        program.hold(src);
        if (is_relation)
            for (int reg : program.relations.back().regs) program.hold(reg);
    }
    if (dst >= program.registers) program.registers = dst + 1;
    program.code.push_back(std::move(i));
}

static int add_tensor(GuardProgram &program, std::vector<int64_t> sizes, std::vector<int64_t> strides, bool check_strides,
                      int dtype, int device, int device_index, uint32_t flag_mask, uint32_t flag_values)
{
    TensorFacts facts;
    facts.sizes = std::move(sizes);
    facts.strides = std::move(strides);
    facts.check_strides = check_strides;
    facts.dtype = dtype;
    facts.device = device;
    facts.device_index = device_index;
    facts.flag_mask = flag_mask;
    facts.flag_values = flag_values;
    program.tensors.push_back(std::move(facts));
    return (int)program.tensors.size() - 1;
}

static int add_shape(GuardProgram &program, const std::vector<std::tuple<int, int, int>> &inputs,
                     std::vector<std::pair<int, int64_t>> code)
{
    ShapeCode shape;
    for (auto [reg, property, dim] : inputs) shape.inputs.push_back({reg, property, dim});
    shape.depth = (int)code.size() + 1;
    shape.code = std::move(code);
    program.shapes.push_back(std::move(shape));
    return (int)program.shapes.size() - 1;
}

static PyCodeObject *as_code(py::handle code)
{
    if (!PyCode_Check(code.ptr())) throw py::type_error("expected a code object");
    return reinterpret_cast<PyCodeObject *>(code.ptr());
}

static OwnerState *owner_state(py::handle code, long owner)
{
    CodeState *state = code_state(as_code(code), true);
    if (state == nullptr) throw std::bad_alloc();
    return state->find(owner, true);
}

static void add_entry(py::handle original, long owner, std::shared_ptr<GuardProgram> guards, py::object code,
                      py::object flat, py::object info)
{
    if (!lf_fits(as_code(original), as_code(code)))
        throw py::value_error("the replacement code does not take the same arguments and free variables as the frame");
    auto entry = std::make_shared<Entry>();
    entry->guards = std::move(guards);
    for (py::handle made : {code, flat}) code_state(as_code(made), true)->skip = true; /* never captured itself */
    entry->code = reinterpret_cast<PyCodeObject *>(code.release().ptr());
    entry->flat = reinterpret_cast<PyCodeObject *>(flat.release().ptr());
    entry->info = info.release().ptr();
    auto &entries = owner_state(original, owner)->entries;
    entries.insert(entries.begin(), std::move(entry));
    ++counters.compiled;
}

static py::list entries_of(py::handle code, long owner)
{
    py::list infos;
    CodeState *state = code_state(as_code(code), false);
    OwnerState *mine = state ? state->find(owner, false) : nullptr;
    if (mine != nullptr)
        for (auto &entry : mine->entries) infos.append(py::reinterpret_borrow<py::object>(entry->info));
    return infos;
}

static void reset_code(py::handle code)
{
    CodeState *state = code_state(as_code(code), false);
    if (state == nullptr || state->skip) return;
    std::vector<std::shared_ptr<Entry>> dropped; /* freed after the lists are empty: freeing runs Python */
    for (auto &owner : state->owners) {
        for (auto &entry : owner->entries) dropped.push_back(std::move(entry));
        owner->entries.clear();
        owner->skip = owner->frozen = false;
    }
}

static void forget_owner(py::handle code, long owner)
{
    CodeState *state = code_state(as_code(code), false);
    if (state == nullptr) return;
    std::unique_ptr<OwnerState> dropped; /* freed after it is out of the list: freeing runs Python */
    auto &owners = state->owners;
    for (size_t i = 0; i < owners.size(); ++i)
        if (owners[i]->owner == owner) {
            dropped = std::move(owners[i]);
            owners.erase(owners.begin() + static_cast<std::ptrdiff_t>(i));
            break;
        }
}

static py::dict count()
{
    py::dict d;
    d["hits"] = counters.hits;
    d["misses"] = counters.misses;
    d["fallbacks"] = counters.fallbacks;
    d["compiled"] = counters.compiled;
    return d;
}

PYBIND11_MODULE(_core, m)
{
    m.doc() = "Guard programs, the cache per code object and the eval-frame hook.";
    start_hook();
    py::class_<GuardProgram, std::shared_ptr<GuardProgram>>(m, "GuardProgram", "Guards compiled to register code.")
        .def(py::init<>())
        .def("add", &add_instruction, "Append one instruction.")
        .def("add_tensor", &add_tensor, "Add the facts of a tensor check; returns their index.")
        .def("add_shape", &add_shape, "Add a condition over sizes in postfix form; returns its index.")
        .def("set_inputs", &GuardProgram::set_inputs,
             "The registers whose values the compiled code takes, as a tuple in the slot behind its arguments.")
        .def("__len__", [](const GuardProgram &p) { return p.code.size(); })
        .def_readonly("runs_python", &GuardProgram::runs_python, "Whether evaluation may call Python code.");
    m.def("add_entry", &add_entry, "add_entry(code, owner, program, replacement, flat, info)");
    m.def("entries", &entries_of, "entries(code, owner): the infos, most recently used first.");
    m.def("skip_always", [](py::handle code) { code_state(as_code(code), true)->skip = true; },
          "Never capture this code, whoever asks.");
    m.def("skip", [](py::handle code, long owner) { owner_state(code, owner)->skip = true; }, "Run this code plainly.");
    m.def("freeze", [](py::handle code, long owner) { owner_state(code, owner)->frozen = true; },
          "Use the entries there are, make no new ones.");
    m.def("reset_code", &reset_code, "Drop the entries and marks of a code object.");
    m.def("forget_owner", &forget_owner, "forget_owner(code, owner): drop what an owner that is gone knew of a code object.");
    m.def("counters", &count, "Hits, misses, fallbacks and compiled entries of this process.");
    m.def("is_compiling", [] { return capture.compiling; }, "Whether this thread is inside the compiler.");
    m.def("is_capturing", [] { return capture.callback != nullptr; }, "Whether this thread captures frames.");
    m.def("set_drop_code", [](py::handle code) { lf_set_drop_code(as_code(code)); }, "Code for dropping frames (3.12+).");
    m.def("learn_ndarray", [](py::handle type, py::handle sample) { return learn_ndarray(type.ptr(), sample.ptr()); },
          "Read arrays of this type in C, if their layout is the known one.");
    m.def("learn_tensor_type", [](py::handle type) { return learn_tensor_type(type.ptr()); },
          "Read tensors of this type through its __lamina_abi__.");
    m.def("same_constant", [](py::handle a, py::handle b) { return same_constant(a.ptr(), b.ptr()); },
          "Equality as `equals` guards mean it.");
    m.def("after_fork_in_child", &after_fork_in_child, "Forget the threads that are gone.");
    if (add_objects(m.ptr()) < 0) throw py::error_already_set();
}
