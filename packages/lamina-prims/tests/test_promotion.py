"""Promotion against a stored table (data/promotion.json), cell by cell; and where we go beyond it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lamina_prims as prims
from lamina_fx import DTYPES, ScalarSpec, TensorSpec, dtype_of
from lamina_prims.promotion import promote, result_dtype

TABLE = json.loads((Path(__file__).parent / "data" / "promotion.json").read_text())
NAMES = TABLE["dtypes"]
SCALARS = {"bool": True, "int": 1, "float": 1.0, "complex": 1j}


def tensor(name: str, ndim: int) -> TensorSpec:
    return TensorSpec((2,) * ndim, dtype_of(name))


def test_the_table_covers_every_dtype() -> None:
    assert sorted(NAMES) == sorted(d.name for d in DTYPES)


@pytest.mark.parametrize("a", NAMES)
def test_two_tensors(a: str) -> None:
    for b, want in zip(NAMES, TABLE["tensor_tensor"][NAMES.index(a)], strict=True):
        if want is not None:
            assert str(result_dtype(tensor(a, 1), tensor(b, 1))) == want, (a, b)


@pytest.mark.parametrize("a", NAMES)
def test_a_tensor_without_dimensions(a: str) -> None:
    for b, want in zip(NAMES, TABLE["tensor_zerodim"][NAMES.index(a)], strict=True):
        if want is not None:
            assert str(result_dtype(tensor(a, 1), tensor(b, 0))) == want, (a, b)


@pytest.mark.parametrize("table", ["tensor_scalar", "zerodim_scalar"])
def test_python_scalars(table: str) -> None:
    for a, row in TABLE[table].items():
        for kind, want in row.items():
            if want is not None:
                spec = tensor(a, 1 if table == "tensor_scalar" else 0)
                assert str(result_dtype(spec, SCALARS[kind])) == want, (a, kind)
                assert str(result_dtype(spec, ScalarSpec(type(SCALARS[kind])))) == want, (a, kind)


def test_integers_that_the_table_leaves_open_get_the_smallest_type_that_holds_both() -> None:
    names = ("uint16", "int16"), ("uint32", "int8"), ("uint8", "uint64"), ("bool", "uint32")
    assert [str(promote(dtype_of(a), dtype_of(b))) for a, b in names] == ["int32", "int64", "uint64", "uint32"]


@pytest.mark.parametrize(
    ("a", "b"), [("uint64", "int64"), ("float8_e5m2", "float32"), ("float8_e4m3fn", "float8_e5m2")]
)
def test_no_common_type(a: str, b: str) -> None:
    with pytest.raises(RuntimeError, match=f"no common type of ({a} and {b}|{b} and {a}): convert one of them first"):
        promote(dtype_of(a), dtype_of(b))


def test_the_default_dtype_decides_what_floats_become() -> None:
    ints = TensorSpec((2,), dtype_of("int64"))
    prims.set_default_dtype(dtype_of("float64"))
    try:
        assert str(result_dtype(ints, 1.0)) == "float64"
        assert str(result_dtype(ints, 1j)) == "complex128"
        assert str(prims.ops.exp.infer((ints,), {}).dtype) == "float64"
        assert prims.ops.sqrt(np.array([4])).dtype == np.float64
    finally:
        prims.set_default_dtype(dtype_of("float32"))
    assert str(prims.ops.exp.infer((ints,), {}).dtype) == "float32"


def test_the_default_dtype_must_be_floating() -> None:
    with pytest.raises(TypeError, match="must be floating-point, not int64"):
        prims.set_default_dtype(dtype_of("int64"))
