/* Conditions over sizes: a postfix program in 64 bits with Python's floor semantics. Overflow fails the guard. */
#include "guards.h"

namespace lamina {

enum Word { Input, Number, Add, Sub, Mul, FloorDiv, Mod, Pow, Neg, Min, Max, Eq, Ne, Lt, Le, Gt, Ge, And, Or, Not };

static bool floor_div(int64_t a, int64_t b, int64_t *quotient, int64_t *rest)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) {
        --q;
        r += b;
    }
    *quotient = q;
    *rest = r;
    return true;
}

static bool power(int64_t base, int64_t exponent, int64_t *result)
{
    if (exponent < 0) return false;
    int64_t out = 1;
    for (; exponent > 0; --exponent)
        if (__builtin_mul_overflow(out, base, &out)) return false;
    *result = out;
    return true;
}

static bool binary(int word, int64_t a, int64_t b, int64_t *out)
{
    int64_t ignored;
    switch (word) {
    case Add: return !__builtin_add_overflow(a, b, out);
    case Sub: return !__builtin_sub_overflow(a, b, out);
    case Mul: return !__builtin_mul_overflow(a, b, out);
    case FloorDiv: return floor_div(a, b, out, &ignored);
    case Mod: return floor_div(a, b, &ignored, out);
    case Pow: return power(a, b, out);
    case Min: *out = a < b ? a : b; return true;
    case Max: *out = a > b ? a : b; return true;
    case Eq: *out = a == b; return true;
    case Ne: *out = a != b; return true;
    case Lt: *out = a < b; return true;
    case Le: *out = a <= b; return true;
    case Gt: *out = a > b; return true;
    case Ge: *out = a >= b; return true;
    case And: *out = a && b; return true;
    case Or: *out = a || b; return true;
    }
    return false;
}

bool shape_holds(const ShapeCode &shape, PyObject *const *registers)
{
    int64_t few[64];
    std::vector<int64_t> many;
    int64_t *stack = few;
    if (shape.depth > 64) {
        many.resize(shape.depth);
        stack = many.data();
    }
    int top = 0;
    for (auto [word, operand] : shape.code) {
        switch (word) {
        case Input: {
            const ShapeInput &input = shape.inputs[operand];
            if (!array_property(registers[input.reg], input.property, input.dim, &stack[top++])) return false;
            break;
        }
        case Number: stack[top++] = operand; break;
        case Neg:
            if (stack[top - 1] == INT64_MIN) return false;
            stack[top - 1] = -stack[top - 1];
            break;
        case Not: stack[top - 1] = !stack[top - 1]; break;
        default:
            --top;
            if (!binary(word, stack[top - 1], stack[top], &stack[top - 1])) return false;
        }
    }
    return top == 1 && stack[0] != 0;
}

}  // namespace lamina
