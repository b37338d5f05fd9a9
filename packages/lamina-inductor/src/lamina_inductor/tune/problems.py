"""What is computed, as far as the choice of a kernel depends on it: sizes, types, strides, what is fused.

``key`` is the text under which results are recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

__all__ = ["AttentionProblem", "GemmProblem", "Problem"]


@dataclass(frozen=True, slots=True)
class GemmProblem:
    """``batch`` products of ``m`` x ``k`` by ``k`` x ``n``.

    left, right: ``"k"`` or ``"m"``/``"n"``, the dimension whose elements lie together (``""``: none). epilogue: the
    text of what is fused behind, epilogue_bytes: read and written by it per element, epilogue_cost: its work per
    element, epilogue_widest: bytes of the widest element that it reads or writes. described: operands may be read
    through descriptors. taps: of a convolution's window, 0 for a product. tf32: operands of float32 may be rounded.
    overlaps: tiles may be made in turns, so that epilogues overlap with products.
    """

    dtype: str
    batch: int
    m: int
    n: int
    k: int
    left: str
    right: str
    described: bool = False
    epilogue: str = ""
    epilogue_bytes: float = 0.0
    epilogue_cost: int = 0
    taps: int = 0
    epilogue_widest: int = 0
    tf32: bool = False
    overlaps: bool = False

    @property
    def arithmetic(self) -> str:
        """Which of the device's rates counts."""
        return "tf32" if self.tf32 else self.dtype

    @property
    def key(self) -> str:
        """One line."""
        shape = f"{self.batch}x{self.m}x{self.n}x{self.k}"
        kind = f"convolution of {self.taps}" if self.taps else "gemm"
        lie = f"{self.left}{self.right}{' described' * self.described}{' overlaps' * self.overlaps}"
        return f"{kind} {self.arithmetic} {shape} {lie} {self.epilogue}"


@dataclass(frozen=True, slots=True)
class AttentionProblem:
    """``heads`` (batch included) of ``queries`` x ``keys`` with heads of ``width`` (values: ``value_width``).

    described: rows may be read through descriptors. tf32: operands of float32 may be rounded. overlaps: a
    kernel may be used whose products overlap with probabilities.
    """

    dtype: str
    heads: int
    queries: int
    keys: int
    width: int
    value_width: int
    causal: bool
    mask: str = ""
    dropout: bool = False
    backward: bool = False
    described: bool = False
    tf32: bool = False
    overlaps: bool = False

    @property
    def arithmetic(self) -> str:
        """Which of the device's rates counts."""
        return "tf32" if self.tf32 else self.dtype

    @property
    def key(self) -> str:
        """One line."""
        words = [self.arithmetic, f"{self.heads}x{self.queries}x{self.keys}x{self.width}x{self.value_width}", self.mask]
        words += ["causal"] * self.causal + ["dropout"] * self.dropout + ["backward"] * self.backward
        words += ["described"] * self.described + ["overlaps"] * self.overlaps
        return "attention " + " ".join([w for w in words if w])


Problem = Union[GemmProblem, AttentionProblem]
"""Any of them."""
