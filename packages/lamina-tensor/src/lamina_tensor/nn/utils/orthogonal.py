"""Weights whose columns (of a wide matrix: rows) are orthonormal, by maps from all matrices onto such ones.

Sources: M. Lezcano-Casado 2019, "Trivializations for gradient-based optimization on manifolds" (``matrix_exp``,
``cayley``, the base); G. Golub and C. Van Loan, "Matrix Computations", section 5.1 (reflections, and products of them
by one triangular system).
"""

from __future__ import annotations

from ... import random
from ...functions import finfo
from ...namespace import Namespace, root
from ...tensor import Tensor
from ..module import Module
from .parametrize import register_parametrization

__all__ = ["orthogonal"]

_LINALG = Namespace("linalg")
_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """``base``: with a trivialization, the matrix at which the map begins."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape, self.orthogonal_map, self.use_trivialization = weight.shape, orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, original: Tensor) -> Tensor:
        """The weight."""
        wide = original.shape[-2] < original.shape[-1]
        given = original.mT if wide else original
        made = _reflected(given) if self.orthogonal_map == "householder" else self._turned(given)
        if self.use_trivialization:
            made = self.base @ made
        return made.mT if wide else made

    def _turned(self, given: Tensor) -> Tensor:
        """The first columns of a rotation, which a skew-hermitian matrix gives."""
        rows, columns = given.shape[-2:]
        lower = given.tril()
        if rows != columns:
            lower = root.cat([lower, given.new_zeros((*given.shape[:-1], rows - columns))], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            made = _LINALG.matrix_exp(skew)
        else:
            one = root.eye(rows, dtype=given.dtype, device=given.device)
            made = _LINALG.solve(one - skew / 2, one + skew / 2)
        return made[..., :columns]

    def right_inverse(self, weight: Tensor) -> Tensor:
        """The original from which the weight, or the orthogonal matrix nearest to it by columns, is computed.

        Raises:
            ValueError: the weight has another shape.
            NotImplementedError: there is no base, and the map is not ``householder``.
        """
        if weight.shape != self.shape:
            raise ValueError(f"expected a matrix or batch of matrices of shape {tuple(self.shape)}, got a tensor of "
                             f"shape {tuple(weight.shape)}")  # fmt: skip
        wide = weight.shape[-2] < weight.shape[-1]
        given = weight.mT if wide else weight
        if self.use_trivialization:
            self.base = _completed(given)
            original = root.zeros_like(weight)
            original.diagonal(0, -2, -1).fill_(-1.0)  # of reflections: none turns anything
            return original
        if self.orthogonal_map != "householder":
            raise NotImplementedError(f"the map {self.orthogonal_map!r} cannot be assigned to: use_trivialization=True")
        original = _reflections(given)
        return original.mT if wide else original


def _reflected(given: Tensor) -> Tensor:
    """The first columns of the product of the reflections at the vectors below the diagonal, each column with the sign
    on the diagonal, which has no derivative."""
    rows, columns = given.shape[-2:]
    one = root.eye(rows, columns, dtype=given.dtype, device=given.device)
    vectors = given.tril(-1) + one
    products = vectors.mT @ vectors
    system = products.triu(1) + (products.diagonal(0, -2, -1) / 2).diag_embed()
    turned = _LINALG.solve_triangular(system, vectors[..., :columns, :].mT, upper=True)
    signs = given.diagonal(0, -2, -1).detach().sign()
    return (one - vectors @ turned) * signs.unsqueeze(-2)


def _reflections(given: Tensor) -> Tensor:
    """What ``_reflected`` maps to the orthogonal factor of a matrix, whose triangular one has a positive diagonal."""
    rest, made = given.clone(), root.zeros_like(given)
    for i in range(given.shape[-1]):
        column = rest[..., i:, i].clone()
        first, norm = column[..., 0].clone(), column.norm(dim=-1)
        end = norm.where(first < 0, -norm)  # away from the first element: nothing cancels
        scale = first - end
        column[..., 0] = scale
        vector = column / scale.where(norm > 0, 1.0).unsqueeze(-1)
        vector[..., 0] = 1.0
        factor = 2.0 / (vector * vector).sum(-1, keepdim=True).unsqueeze(-1)
        part = rest[..., i:, i:]
        part -= factor * vector.unsqueeze(-1) @ (vector.unsqueeze(-2) @ part)
        made[..., i:, i] = vector
        made[..., i, i] = end.sign().where(norm > 0, -1.0)
    return made


def _completed(given: Tensor) -> Tensor:
    """A square orthogonal matrix that begins with the orthogonal factor of a tall one."""
    rows, columns = given.shape[-2:]
    if rows == columns and _is_orthogonal(given):
        return given.clone()
    if rows != columns:
        more = random.randn(*given.shape[:-1], rows - columns, device=given.device)
        given = root.cat([given, more.to(given.dtype)], -1)
    made, triangular = _LINALG.qr(given)
    signs = triangular.diagonal(0, -2, -1).sgn()
    return made * signs.where(signs != 0, 1.0).unsqueeze(-2)


def _is_orthogonal(given: Tensor) -> bool:
    one = root.eye(given.shape[-1], dtype=given.dtype, device=given.device)
    tolerance = 10 * given.shape[-2] * finfo(given.dtype).eps
    return bool(((given.mH @ given - one).abs() <= tolerance).all())


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Let a weight be a matrix (or a batch of matrices) with orthonormal columns, of a wide matrix: rows.

    Args:
        module: the module; it is returned.
        name: of the parameter or buffer, float or complex, of at least two dimensions.
        orthogonal_map: ``"matrix_exp"``, ``"cayley"`` or ``"householder"``; None: ``"matrix_exp"`` for square and for
            complex matrices, ``"householder"`` for others.
        use_trivialization: multiply by a base (a buffer), so that the weight begins with, and can be assigned, any
            orthogonal matrix; else only ``"householder"`` can be assigned to.

    Raises:
        ValueError: there is no such tensor, it is no matrix, there is no such map, or reflections of complex numbers.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"module {type(module).__name__} has no parameter or buffer with name {name!r}")
    if weight.ndim < 2:
        raise ValueError(f"expected a matrix or batch of matrices, got a tensor of {weight.ndim} dimensions")
    chosen = orthogonal_map
    if chosen is None:
        chosen = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if chosen not in _MAPS:
        raise ValueError(f"orthogonal_map has to be one of {', '.join(map(repr, _MAPS))}, got {orthogonal_map!r}")
    if chosen == "householder" and weight.is_complex():
        raise ValueError("the householder parametrization does not support complex tensors")
    return register_parametrization(module, name, _Orthogonal(weight, chosen, use_trivialization), unsafe=True)
