"""What is certain of a factorisation: a library may choose other signs, phases and orders, but no other products.

``certain(id, results)`` gives arrays that two right factorisations of one matrix have in common: the product of the
factors (which is the matrix), the products of a factor with itself (which say that it is orthogonal), values that are
ordered, symmetric functions of those that are not. Computed in double precision on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FACTORISATIONS", "certain"]


def _adjoint(a: Any) -> Any:
    return np.swapaxes(a, -1, -2).conj()


def _gram(a: Any) -> Any:
    return _adjoint(a) @ a


def _eigen(values: Any, vectors: Any) -> list[Any]:
    return [values, (vectors * values[..., None, :]) @ _adjoint(vectors), _gram(vectors)]


def _unordered(values: Any) -> Any:
    """The coefficients of the polynomial that has these roots."""
    return np.stack([np.poly(row) for row in values.reshape(-1, values.shape[-1])])


def _general_eigen(values: Any, vectors: Any) -> list[Any]:
    product = (vectors * values[..., None, :]) @ np.linalg.inv(vectors)
    return [_unordered(values), product, np.linalg.norm(vectors, axis=-2)]


def _singular(u: Any, s: Any, vh: Any) -> list[Any]:
    k = s.shape[-1]
    return [s, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], _gram(u), vh @ _adjoint(vh)]


def _orthogonal_triangular(q: Any, r: Any) -> list[Any]:
    return [_gram(r), np.tril(r, -1)] if q.size == 0 else [q @ r, _gram(q), np.tril(r, -1)]


def _pivoted(packed: Any, pivots: Any) -> list[Any]:
    """The matrix that was factorised: rows of L U exchanged back, from the last to the first."""
    rows, columns = packed.shape[-2:]
    k = min(rows, columns)
    lower = np.tril(packed, -1)[..., :k] + np.eye(rows, k)
    product = np.array(lower @ np.triu(packed)[..., :k, :])
    for matrix, exchanges in zip(product.reshape(-1, rows, columns), pivots.reshape(-1, k), strict=True):
        for i in reversed(range(k)):
            matrix[[i, exchanges[i] - 1]] = matrix[[exchanges[i] - 1, i]]
    return [product]


FACTORISATIONS: dict[str, Callable[..., list[Any]]] = {
    "eig": _general_eigen,
    "eigh": _eigen,
    "eigvals": lambda values: [_unordered(values)],
    "lu_factor": _pivoted,
    "lu_packed": _pivoted,
    "qr": _orthogonal_triangular,
    "svd": _singular,
    "svd.old": lambda u, s, v: _singular(u, s, _adjoint(v)),
}
"""By operator: its results to what is certain of them."""


def certain(id: str, results: list[Any]) -> list[Any]:
    """What two right results of this operator have in common, as arrays in double precision."""
    wide = [
        r.astype(np.complex128 if r.dtype.kind == "c" else np.float64) if r.dtype.kind in "fc" else r for r in results
    ]
    return FACTORISATIONS[id](*wide)
