"""Linear maps and products by name: linear, bilinear, einsum."""

from __future__ import annotations

from collections.abc import Sequence

from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor

__all__: list[str] = []


@composite(
    names=("nn.functional.linear",),
    samples=calls(
        call(tensor(2, 3), tensor(4, 3), tensor(4)),
        call(tensor(2, 5, 3), tensor(4, 3)),
        call(tensor(3), tensor(4, 3), tensor(4)),
        call(tensor(2, 3), tensor(3)),
        call(tensor(2, 3, dtype="bfloat16"), tensor(4, 3, dtype="bfloat16"), tensor(4, dtype="bfloat16")),
    ),
    errors=[error(RuntimeError, "cannot be multiplied", tensor(2, 3), tensor(4, 5))],
)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias: (*, in), (out, in), (out) -> (*, out)."""
    product = ops.matmul(input, ops.t(weight) if len(weight.shape) == 2 else weight)
    return product if bias is None else ops.add(product, bias)


@linear.vjp
def _(ct, input, weight, bias, needs):
    gi = gw = gb = None
    if len(weight.shape) == 1:
        if needs[0]:
            gi = ops.mul(ops.unsqueeze(ct, -1), weight)
        if needs[1]:
            lead = tuple(range(len(ct.shape)))
            gw = ops.dot_general(ct, input, (lead, lead), ((), ()))
        return gi, gw, ops.sum(ct) if bias is not None and needs[2] else None
    lead = tuple(range(len(ct.shape) - 1))
    if needs[0]:
        gi = ops.matmul(ct, weight)
    if needs[1]:
        gw = ops.dot_general(ct, input, (lead, lead), ((), ())) if lead else ops.outer(ct, input)
    if bias is not None and needs[2]:
        gb = ops.sum(ct, lead) if lead else ct
    return gi, gw, gb


@composite(
    names=("nn.functional.bilinear", "bilinear"),
    samples=calls(
        call(tensor(2, 3), tensor(2, 4), tensor(5, 3, 4), tensor(5)), call(tensor(3), tensor(4), tensor(5, 3, 4))
    ),
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1^T W_k x2 for each k: (*, a), (*, b), (out, a, b), (out) -> (*, out)."""
    value = einsum("...i,kij,...j->...k", [input1, weight, input2])
    return value if bias is None else ops.add(value, bias)


# -- einsum -----------------------------------------------------------------------------------------


def _subscripts(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The dimensions of each operand and of the result as labels; those under an ellipsis are "...0", "...1", ..."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise RuntimeError(f"einsum(): {len(parts)} subscripts for {len(ranks)} operands in {equation!r}")
    covered = [rank - len(part.replace("...", "")) for part, rank in zip(parts, ranks, strict=True)]
    most = max([c for part, c in zip(parts, covered, strict=True) if "..." in part], default=0)
    operands = []
    for k, (part, rank, count) in enumerate(zip(parts, ranks, covered, strict=True)):
        if count < 0 or (count and "..." not in part):
            raise RuntimeError(
                f"einsum(): the number of subscripts {part!r} does not match operand {k}'s {rank} dimensions"
            )
        dots = [f"...{i}" for i in range(most - count, most)]
        operands.append(_labels(part, dots, equation))
    if arrow:
        result = _labels(right, [f"...{i}" for i in range(most)], equation)
    else:
        named = [label for operand in operands for label in operand]
        result = [f"...{i}" for i in range(most)]
        result += sorted({label for label in named if label[0] != "." and named.count(label) == 1})
    for label in result:
        if not any(label in operand for operand in operands) or result.count(label) > 1:
            raise RuntimeError(
                f"einsum(): output subscript {label!r} of {equation!r} is in no operand, or twice in the output"
            )
    return operands, result


def _labels(part: str, dots: list[str], equation: str) -> list[str]:
    head, ellipsis, tail = part.partition("...")
    if any(not c.isalpha() for c in head + tail):
        raise RuntimeError(f"einsum(): invalid subscript in {equation!r}; letters, '...', ',' and '->' only")
    return [*head, *(dots if ellipsis else []), *tail]


def _diagonals(value: Tensor, labels: list[str]) -> tuple[Tensor, list[str]]:
    """Take the diagonal of dimensions with one label."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            value = ops.diagonal(value, 0, first, second)
            labels = [x for i, x in enumerate(labels) if i not in (first, second)] + [label]
    return value, labels


def _sum_out(value: Tensor, labels: list[str], kept: set[str]) -> tuple[Tensor, list[str]]:
    dims = tuple(i for i, label in enumerate(labels) if label not in kept)
    if not dims:
        return value, labels
    return ops.sum(value, dims), [label for label in labels if label in kept]


def _product(a: Tensor, la: list[str], b: Tensor, lb: list[str], kept: set[str]) -> tuple[Tensor, list[str]]:
    """Multiply two operands, summing over what both have and nobody needs later. A size of 1 broadcasts."""
    for label in [x for x in la if x in lb]:
        if a.shape[la.index(label)] != b.shape[lb.index(label)]:
            if a.shape[la.index(label)] == 1:
                a, la = ops.squeeze(a, la.index(label)), [x for x in la if x != label]
            elif b.shape[lb.index(label)] == 1:
                b, lb = ops.squeeze(b, lb.index(label)), [x for x in lb if x != label]
            else:
                sizes = f"{a.shape[la.index(label)]} and {b.shape[lb.index(label)]}"
                raise RuntimeError(f"einsum(): operands do not broadcast: subscript {label!r} has sizes {sizes}")
    both = [x for x in la if x in lb]
    batch, contract = [x for x in both if x in kept], [x for x in both if x not in kept]
    a, la = _sum_out(a, la, kept | set(both))
    b, lb = _sum_out(b, lb, kept | set(both))

    def places(labels: list[str], wanted: list[str]) -> tuple[int, ...]:
        return tuple(labels.index(x) for x in wanted)

    value = ops.dot_general(a, b, (places(la, contract), places(lb, contract)), (places(la, batch), places(lb, batch)))
    return value, [*batch, *(x for x in la if x not in both), *(x for x in lb if x not in both)]


@composite(
    names=("einsum",),
    variadic="operands",
    samples=calls(
        call("ij,jk->ik", [tensor(2, 3), tensor(3, 4)]),
        call("bij,bkj->bik", [tensor(2, 3, 4), tensor(2, 5, 4)]),
        call("ii", [tensor(3, 3)]),
        call("ij->ji", [tensor(2, 3)]),
        call("...i,...i->...", [tensor(2, 3, 4), tensor(4)]),
        call("i,j,k->kji", [tensor(2), tensor(3), tensor(4)]),
        call("bhld,bhsd->bhls", [tensor(1, 2, 3, 4), tensor(1, 2, 5, 4)]),
        call("ij,ij->", [tensor(2, 3), tensor(2, 3)]),
    ),
    errors=[
        error(RuntimeError, "operands", "ij,jk", [tensor(2, 3)]),
        error(RuntimeError, "does not match", "ij->i", [tensor(2)]),
        error(RuntimeError, "output subscript", "ij->k", [tensor(2, 3)]),
    ],
)
def einsum(equation: str, operands: Sequence[Tensor]) -> Tensor:
    """Sums of products by Einstein's convention. Operands are multiplied from left to right."""
    labels, result = _subscripts(equation, [len(x.shape) for x in operands])
    values: list[tuple[Tensor, list[str]]] = [_diagonals(x, names) for x, names in zip(operands, labels, strict=True)]
    value, have = values[0]
    for k, (other, names) in enumerate(values[1:], start=1):
        later = set(result).union(*(set(n) for _, n in values[k + 1 :]))
        value, have = _product(value, have, other, names, later)
    value, have = _sum_out(value, have, set(result))
    order = tuple(have.index(label) for label in result)
    return value if order == tuple(range(len(order))) else ops.permute(value, order)
