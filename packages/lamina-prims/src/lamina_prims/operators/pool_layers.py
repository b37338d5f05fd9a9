"""The front end's pooling functions, for one to three dimensions each: max, average, power mean, adaptive, unpool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..registry import composite
from ..samples import TensorArgument, call, calls, error, tensor
from ..types import Tensor
from .pooling import adaptive_avg, adaptive_max, avg_pool, lp_pool, max_pool, max_unpool

Ints = Sequence[int]
_SHAPES = {1: (2, 2, 7), 2: (1, 2, 5, 6), 3: (1, 2, 4, 3, 4)}


def _input(rank: int, kind: str = "distinct") -> TensorArgument:
    return tensor(*_SHAPES[rank], kind=kind)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = name
    function.__doc__ = str(function.__doc__).replace("{}", name[-2])
    return function


def _spelled(name: str, *more: str) -> tuple[str, ...]:
    return (f"nn.functional.{name}", *more)


def _declare_max(rank: int) -> None:
    name = f"max_pool{rank}d"

    def pool(
        input: Tensor,
        kernel_size: int | Ints,
        stride: int | Ints | None = None,
        padding: int | Ints = 0,
        dilation: int | Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor:
        """Maxima of windows of the last {} dimensions; with their flat positions when ``return_indices``."""
        return max_pool(name, rank, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    composite(
        names=_spelled(name, name),
        samples=calls(
            call(_input(rank), 2),
            call(_input(rank), 3, 2, 1, ceil_mode=True),
            call(_input(rank), 2, 1, 1, 2, return_indices=True),
            call(tensor(*_SHAPES[rank][1:], dtype="int64", low=-9, high=9), 2),
        ),
        errors=[
            error(RuntimeError, "at most half", _input(rank), 2, 1, 2),
            error(RuntimeError, "larger", _input(rank), 99),
            error(RuntimeError, "Expected", tensor(3), 2),
        ],
    )(_named(pool, name))


def _declare_max_with_indices(rank: int) -> None:
    name = f"max_pool{rank}d"

    def with_indices(
        input: Tensor,
        kernel_size: int | Ints,
        stride: int | Ints | None = None,
        padding: int | Ints = 0,
        dilation: int | Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """(maxima of windows of the last {} dimensions, their flat int64 positions)."""
        return max_pool(name, rank, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    composite(
        names=(f"nn.functional.{name}_with_indices", f"{name}_with_indices"),
        samples=calls(call(_input(rank), 2), call(_input(rank), 3, 2, 1)),
    )(_named(with_indices, f"max_pool{rank}d_with_indices"))


def _declare_average(rank: int) -> None:
    name = f"avg_pool{rank}d"

    def pool(
        input: Tensor,
        kernel_size: int | Ints,
        stride: int | Ints | None = None,
        padding: int | Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        """Averages of windows of the last {} dimensions."""
        return avg_pool(name, rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    composite(
        names=_spelled(name),
        samples=calls(
            call(_input(rank), 2),
            call(_input(rank), 3, 2, 1, True),
            call(tensor(*_SHAPES[rank], dtype="bfloat16"), 3, 2, 1, True, False),
            call(_input(rank), 3, 2, 1, True, False),
            call(_input(rank), 2, 1, 1, count_include_pad=False),
            call(_input(rank), 2, divisor_override=3),
        ),
        errors=[error(RuntimeError, "not zero", _input(rank), 2, divisor_override=0)],
    )(_named(pool, name))


def _declare_power(rank: int) -> None:
    name = f"lp_pool{rank}d"

    def pool(
        input: Tensor,
        norm_type: float,
        kernel_size: int | Ints,
        stride: int | Ints | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        """(sum of x ** norm_type over windows of the last {} dimensions) ** (1 / norm_type)."""
        return lp_pool(name, rank, input, norm_type, kernel_size, stride, ceil_mode)

    composite(names=_spelled(name), samples=calls(call(tensor(*_SHAPES[rank], low=0.1, high=2), 2.0, 2, 1)))(
        _named(pool, name)
    )


def _declare_adaptive(rank: int) -> None:
    average, maximum = f"adaptive_avg_pool{rank}d", f"adaptive_max_pool{rank}d"

    def mean(input: Tensor, output_size: int | Ints) -> Tensor:
        """Averages of bins; the last {} dimensions become ``output_size`` (None keeps one)."""
        return adaptive_avg(average, rank, input, output_size)

    def most(input: Tensor, output_size: int | Ints, return_indices: bool = False) -> Tensor:
        """Maxima of bins; the last {} dimensions become ``output_size`` (None keeps one)."""
        found: Any = adaptive_max(maximum, rank, input, output_size)
        return found if return_indices else found[0]

    last = _SHAPES[rank][-1]
    samples = calls(
        call(_input(rank), 3),
        call(_input(rank), 1),
        call(tensor(*_SHAPES[rank], dtype="bfloat16", kind="distinct"), 3),
        call(_input(rank), (*(None,) * (rank - 1), last - 1)),
        call(tensor(*_SHAPES[rank][1:], kind="distinct"), 2),
    )
    errors = [error(RuntimeError, "Expected", tensor(3), 2)]
    composite(names=_spelled(average, *((average,) if rank == 1 else ())), samples=samples, errors=errors)(
        _named(mean, average)
    )
    composite(names=_spelled(maximum, *((maximum,) if rank == 1 else ())), samples=samples, errors=errors)(
        _named(most, maximum)
    )


def _declare_unpool(rank: int) -> None:
    name = f"max_unpool{rank}d"

    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: int | Ints,
        stride: int | Ints | None = None,
        padding: int | Ints = 0,
        output_size: Ints | None = None,
    ) -> Tensor:
        """Values at the flat positions that max_pool{}d found; zeros elsewhere."""
        return max_unpool(name, rank, input, indices, kernel_size, stride, padding, output_size)

    # 2 channels of 2 ** rank values go to distinct places among 4 ** rank
    shape = (2,) + (2,) * rank
    positions = tensor(*shape, dtype="int64", kind="distinct")
    composite(names=_spelled(name), samples=calls(call(tensor(*shape), positions, 2)))(_named(unpool, name))


for _rank in (1, 2, 3):
    _declare_max(_rank)
    _declare_max_with_indices(_rank)
    _declare_average(_rank)
    _declare_power(_rank)
    _declare_adaptive(_rank)
    _declare_unpool(_rank)
