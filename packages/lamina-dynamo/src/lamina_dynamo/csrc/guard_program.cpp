/* What a guard program owns, and what it must hold while Python runs. */
#include "guards.h"

namespace lamina {

GuardProgram::~GuardProgram()
{
    for (auto &i : code) {
        if (i.weak == nullptr) Py_XDECREF(i.object); /* with a weak reference only the address is remembered */
        Py_XDECREF(i.weak);
    }
}

void GuardProgram::hold(int reg)
{
    if (reg >= 0 && reg < early && std::find(held.begin(), held.end(), reg) == held.end()) held.push_back(reg);
}

void GuardProgram::set_inputs(std::vector<int> taken)
{
    inputs = std::move(taken);
    inputs_are_early = runs_python && std::all_of(inputs.begin(), inputs.end(), [&](int reg) { return reg < early; });
    if (!inputs_are_early)
        for (int reg : inputs) hold(reg);
}

}  // namespace lamina
