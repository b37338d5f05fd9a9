"""Cases of convolutions for the tests of templates, as ``triton_templates`` has them of products.

``CONVOLUTIONS``: name -> (function over operators, inputs, candidates); ``SYMBOLIC_IMAGES``: with the sizes that are
symbols.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton_templates import BF16, DESCRIBED, ROUNDED, SMALL, SPLIT, WALKING, floats

from lamina_inductor.tune.candidates import GemmCandidate
from lamina_prims import ops

__all__ = ["CONVOLUTIONS", "SYMBOLIC_IMAGES"]


def convolve(stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, rank: int = 2) -> Any:
    def wide(value: Any) -> tuple[int, ...]:
        return (value,) * rank if isinstance(value, int) else value

    def fn(x: Any, w: Any) -> Any:
        return ops.convolution(x, w, None, wide(stride), wide(padding), wide(dilation), False, (0,) * rank, groups)

    return fn


def turned(padding: tuple[int, int], dilation: tuple[int, int] = (1, 1)) -> Any:
    """A transposed convolution, as the gradient by an image is one."""
    return lambda x, w: ops.convolution(x, w, None, (1, 1), padding, dilation, True, (0, 0), 1)


def by_weight(ct: Any, x: Any) -> Any:
    """The gradient of a 3 x 3 convolution's weight."""
    shape = (ct.shape[1], x.shape[1], 3, 3)
    return ops.convolution_weight_grad(ct, x, shape, (1, 1), (1, 1), (1, 1), 1)


def normalised(x: Any, w: Any, mean: Any, scale: Any, shift: Any, r: Any) -> Any:
    """Convolution, batch norm as at inference, relu, residual."""
    y = convolve(padding=1)(x, w)
    y = ops.add(ops.mul(ops.sub(y, over_channels(mean)), over_channels(scale)), over_channels(shift))
    return ops.relu(ops.add(y, r))


def over_channels(v: Any) -> Any:
    return ops.reshape(v, (1, v.shape[0], 1, 1))


def last(images: np.ndarray) -> np.ndarray:
    """The same with the channels last in memory."""
    return np.moveaxis(np.moveaxis(images, 1, -1).copy(), -1, 1)


CONVOLUTIONS: dict[str, tuple[Any, tuple[Any, ...], tuple[GemmCandidate, ...]]] = {
    "3x3 with everything": (
        normalised,
        tuple(floats(*s, dtype=BF16) for s in ((2, 32, 6, 6), (48, 32, 3, 3), (48,), (48,), (48,), (2, 48, 6, 6))),
        (SMALL, DESCRIBED),
    ),
    "3x3 with channels last": (
        normalised,
        (
            last(floats(2, 64, 6, 6, dtype=BF16)), last(floats(48, 64, 3, 3, dtype=BF16)),
            *(floats(48, dtype=BF16) for _ in range(3)), last(floats(2, 48, 6, 6, dtype=BF16)),
        ),
        (SMALL, DESCRIBED, WALKING),
    ),
    "boxes over the ends, dilated": (
        convolve(padding=(2, 1), dilation=(2, 1)),
        (floats(3, 32, 9, 7, dtype=np.float16), floats(40, 32, 3, 2, dtype=np.float16)), (DESCRIBED,),
    ),
    "boxes of a volume": (
        convolve(padding=1, rank=3),
        (floats(1, 32, 4, 5, 6, dtype=np.float16), floats(32, 32, 3, 3, 3, dtype=np.float16)), (DESCRIBED,),
    ),
    "gradient by an image": (
        turned(padding=(2, 1), dilation=(2, 1)), (floats(2, 24, 9, 8), floats(24, 16, 3, 2)), (SMALL,),
    ),
    "gradient by an image with channels last": (
        turned(padding=(1, 1)), (last(floats(2, 32, 7, 6, dtype=BF16)), last(floats(32, 32, 3, 3, dtype=BF16))),
        (SMALL, DESCRIBED),
    ),
    "gradient by a weight": (by_weight, (floats(5, 8, 6, 7), floats(5, 16, 6, 7)), (SMALL, SPLIT)),
    "gradient by a weight with channels last": (
        by_weight, (last(floats(9, 8, 6, 7, dtype=BF16)), last(floats(9, 16, 6, 7, dtype=BF16))), (SMALL, SPLIT),
    ),
    "1x1 by rows": (
        lambda x, w, r: ops.relu(ops.add(convolve()(x, w), r)),
        tuple(last(floats(*s, dtype=BF16)) for s in ((3, 64, 7, 5), (40, 64, 1, 1), (3, 40, 7, 5))),
        (SMALL, DESCRIBED, WALKING),
    ),
    "1x1 of one element": (
        convolve(), tuple(last(floats(*s, dtype=BF16)) for s in ((70, 32, 1, 1), (40, 32, 1, 1))), (SMALL, DESCRIBED),
    ),
    "boxes of a thin image": (
        convolve(padding=(1, 0)), tuple(last(floats(*s, dtype=BF16)) for s in ((5, 32, 9, 1), (40, 32, 3, 1))),
        (SMALL, DESCRIBED),
    ),
    "boxes of a line": (
        convolve(padding=2, rank=1), (floats(2, 32, 33, dtype=np.float16), floats(24, 32, 5, dtype=np.float16)),
        (DESCRIBED,),
    ),
    "3x3": (convolve(padding=1), (floats(2, 32, 7, 6), floats(24, 32, 3, 3)), (SMALL, ROUNDED)),
    "few channels": (convolve(stride=2, padding=3), (floats(2, 3, 15, 17), floats(20, 3, 7, 7)), (SMALL,)),
    "dilated": (convolve(padding=(2, 1), dilation=(2, 1)), (floats(1, 40, 8, 7), floats(16, 40, 3, 2)), (SMALL,)),
    "groups": (convolve(padding=1, groups=2), (floats(2, 16, 7, 5), floats(24, 8, 3, 3)), (SMALL,)),
    "1x1": (convolve(), (floats(2, 32, 7, 5), floats(24, 32, 1, 1)), (SMALL,)),
    "1d": (convolve(padding=2, rank=1), (floats(2, 16, 33), floats(24, 16, 5)), (SMALL,)),
    "3d": (convolve(padding=1, stride=(1, 2, 1), rank=3), (floats(1, 16, 4, 5, 6), floats(8, 16, 3, 3, 3)), (SMALL,)),
}  # fmt: skip


SYMBOLIC_IMAGES: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]] = {
    "images of any number": (
        convolve(padding=1), (floats(5, 16, 7, 6), floats(8, 16, 3, 3)), (SMALL,), (5,),
    ),
    "boxes of any number of images": (
        convolve(padding=1), (floats(5, 32, 7, 6, dtype=np.float16), floats(8, 32, 3, 3, dtype=np.float16)),
        (DESCRIBED,), (5,),
    ),
}  # fmt: skip
