"""Ways in and out: data, NumPy, DLPack, copies, conversions, what C code sees."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import weakref

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_fx import DTYPES
from lamina_prims.arrays import numpy_dtype
from lamina_tensor.cuda.stub_provider import StubProvider

DATA = [
    ([1, 2], lt.int64), ([1.0], lt.float32), (True, lt.bool), ([1, 2.5], lt.float32),
    ([], lt.float32), (1j, lt.complex64),
    ([True, 2], lt.int64), (np.float64(1), lt.float64), (np.ones(2, np.int16), lt.int16),
    ([np.ones(2), np.zeros(2)], lt.float64),
]  # fmt: skip


@pytest.mark.parametrize(("data", "dtype"), DATA, ids=[str(d)[:20] for d, _ in DATA])
def test_dtype_of_data(data, dtype) -> None:
    assert lt.tensor(data).dtype == dtype


def test_default_dtype() -> None:
    lt.set_default_dtype(lt.float64)
    try:
        assert lt.tensor(1.0).dtype == lt.zeros(1).dtype == lt.float64
    finally:
        lt.set_default_dtype(lt.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trips(dtype) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(numpy_dtype(dtype))
    x = lt.from_numpy(array)
    assert x.dtype is dtype and x.numpy().dtype == array.dtype
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert twin.dtype is dtype and (twin.numpy() == array).all() and twin.storage is not x.storage
    assert x.tolist() == [[0, 1], [1, 0]]
    assert x.to(lt.float32).to(dtype).tolist() == x.tolist()


def test_dlpack_both_ways() -> None:
    x = lt.arange(6.0).reshape(2, 3)
    array = np.from_dlpack(x.t())
    assert array.shape == (3, 2) and np.shares_memory(array, x.numpy())
    back = lt.from_dlpack(array)
    back.add_(1)
    assert x[0, 0].item() == 1
    with pytest.raises(BufferError, match="require gradient"):
        np.from_dlpack(x.requires_grad_())


def test_numpy_functions_and_mixed_arithmetic() -> None:
    x = lt.ones(2)
    assert isinstance(np.exp(x), lt.Tensor) and np.asarray(x).dtype == np.float32
    assert isinstance(np.ones(2, np.float32) + x, lt.Tensor) and (x + np.ones(2, np.float32)).tolist() == [2, 2]
    assert np.array(x, dtype=np.int64).tolist() == [1, 1]


NUMPY_ERRORS = [
    (lambda: lt.from_numpy([1]), TypeError, "expected np.ndarray"),
    (lambda: lt.from_numpy(np.ones(3)[::-1]), ValueError, "negative"),
    (lambda: lt.from_numpy(np.array(["a"])), TypeError, "can't convert np.ndarray of type"),
    (lambda: lt.from_numpy(np.ones(2, ">f4")), ValueError, "byte order"),
    (lambda: lt.tensor([[1], [2, 3]]), ValueError, "inhomogeneous"),
    (lambda: lt.tensor(["a"]), TypeError, "invalid data type 'str'"),
    (lambda: lt.tensor([300], dtype=lt.uint8), RuntimeError, "does not fit"),
]


@pytest.mark.parametrize(("call", "kind", "message"), NUMPY_ERRORS, ids=[m or "ragged" for *_, m in NUMPY_ERRORS])
def test_errors(call, kind, message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_conversions_return_the_tensor_when_nothing_changes() -> None:
    x = lt.ones(2)
    assert x.float() is x.to(lt.float32) is x.to("cpu") is x.contiguous() is x.cpu() is x.type_as(x) is x
    assert x.to(lt.float32, copy=True) is not x
    assert x.to(lt.ones(1, dtype=lt.int8)).dtype == x.type("lamina.CharTensor").dtype == lt.int8
    assert x.type() == "lamina.FloatTensor"
    with pytest.raises(TypeError, match="unexpected keyword"):
        x.to(dtyp=lt.int8)


def test_scalars() -> None:
    x = lt.tensor(2.5)
    assert (float(x), int(x), bool(x), x.item(), f"{x:.2f}", complex(x)) == (2.5, 2, True, 2.5, "2.50", 2.5 + 0j)
    assert [10, 20, 30][lt.tensor(1)] == 20
    for call in (lambda: bool(lt.ones(2)), lambda: lt.ones(2).item()):
        with pytest.raises(RuntimeError):
            call()
    for call in (lambda: len(x), lambda: iter(x), lambda: [0][lt.tensor(0.0)]):
        with pytest.raises(TypeError):
            call()


def test_creation() -> None:
    x = lt.zeros(2, 3, dtype=lt.int32)
    assert lt.zeros((2, 3)).shape == lt.zeros([2, 3]).shape == x.shape == lt.empty_like(x).shape
    assert lt.full((2,), 3).dtype == lt.int64 and lt.full((2,), 3.0).dtype == lt.float32
    assert lt.arange(1, 7, 2).tolist() == [1, 3, 5] and lt.eye(2).tolist() == [[1, 0], [0, 1]]
    assert lt.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert x.new_ones(2).dtype == x.new_full((1,), 2).dtype == x.new_tensor([1.5]).dtype == lt.int32
    assert lt.ones(2, requires_grad=True).requires_grad and lt.ones_like(x, dtype=lt.float64).dtype == lt.float64
    assert lt.Tensor(2, 3).shape == (2, 3) and lt.Tensor([1, 2]).tolist() == [1.0, 2.0]


class Labelled(lt.Tensor):
    pass


def test_subclasses_attributes_and_weak_references() -> None:
    x = lt.ones(2).as_subclass(Labelled)
    x.label = "a"
    twin, loaded = copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    assert type(twin) is type(loaded) is Labelled and twin.label == loaded.label == "a"
    assert type(x + 1) is lt.Tensor and hash(x) != hash(twin) and x in {x: 1}
    reference = weakref.ref(x)
    del x
    assert reference() is None
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(lt.ones(2, requires_grad=True) * 2)


class Head(ctypes.Structure):
    _fields_ = [
        ("refcount", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_int64),
        ("version", ctypes.POINTER(ctypes.c_uint64)), ("ndim", ctypes.c_int32), ("dtype", ctypes.c_int16),
        ("device", ctypes.c_int8), ("device_index", ctypes.c_int8), ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]  # fmt: skip


class Abi(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32), ("struct_size", ctypes.c_int32), ("base", ctypes.py_object),
        ("empty", ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int] * 3),
        ),
        ("from_memory", ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int] * 3,
            ctypes.py_object)),
        ("stream", ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int)),
    ]  # fmt: skip


def abi() -> Abi:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Abi.from_address(get(lt.Tensor.__lamina_abi__, b"lamina.tensor_abi"))


def head(tensor: lt.Tensor) -> Head:
    return Head.from_address(id(tensor))


def test_what_c_code_reads() -> None:
    table = abi()
    assert (table.version, table.struct_size) == (0, ctypes.sizeof(Head)) and issubclass(lt.Tensor, table.base)
    base = lt.arange(24, dtype=lt.int16).reshape(2, 3, 4)
    view = base[1, :, ::2]
    c = head(view)
    assert (c.ndim, c.sizes[:2], c.strides[:2], c.offset) == (2, [3, 2], [4, 2], 12)
    assert c.data == base.data_ptr() + 24 and DTYPES[c.dtype] is lt.int16 and c.flags == 2 | 16
    base.add_(1)
    assert c.version[0] == head(base).version[0] == 1
    leaf = lt.ones(2, requires_grad=True)
    assert head(leaf).flags == 1 | 2 and head(leaf * 2).flags == 1
    leaf.sum().backward()
    assert head(leaf).flags == 1 | 2 | 8
    assert head(lt.fake_tensor(base.spec)).flags & 4 and head(lt.fake_tensor(base.spec)).data is None
    wide = lt.zeros(1, 2, 1, 2, 1, 2)
    assert head(wide).sizes[:6] == [1, 2, 1, 2, 1, 2]


def test_memory_for_compiled_code() -> None:
    table = abi()
    sizes, strides = (ctypes.c_int64 * 2)(300, 200), (ctypes.c_int64 * 2)(1, 300)
    made = table.empty(2, sizes, strides, lt.float32.code, 0, 0)
    assert made.shape == (300, 200) and made.stride() == (1, 300) and made.data_ptr() % 64 == 0
    made.fill_(3)
    address = made.data_ptr()
    part = table.from_memory(address + 8, 1, (ctypes.c_int64 * 1)(4), None, lt.float32.code, 0, 0, made.storage.array)
    del made
    assert part.tolist() == [3, 3, 3, 3]  # the owner is kept alive
    del part
    again = table.empty(2, sizes, None, lt.float32.code, 0, 0)
    assert again.data_ptr() == address and again.stride() == (200, 1)  # a big block is used again
    with pytest.raises(RuntimeError, match=r"the device .cuda. cannot be used"):
        table.empty(2, sizes, None, lt.float32.code, 1, 0)


def test_memory_of_a_device_for_compiled_code() -> None:
    before = lt.cuda.use_provider(StubProvider(devices=2))
    try:
        table = abi()
        sizes, strides = (ctypes.c_int64 * 2)(3, 2), (ctypes.c_int64 * 2)(1, 3)
        made = table.empty(2, sizes, strides, lt.float32.code, 1, 1)
        assert str(made.device) == "cuda:1" and made.stride() == (1, 3) and head(made).data == made.data_ptr()
        assert (head(made).device, head(made).device_index) == (1, 1)
        held = lt.cuda.memory_allocated(1)
        made.fill_(2)
        part = table.from_memory(made.data_ptr() + 4, 1, sizes, None, lt.float32.code, 1, 1, made.storage.array)
        del made
        assert part.tolist() == [2, 2, 2] and lt.cuda.memory_allocated(1) <= held  # counted once, where it was taken
        gc.collect()
        start = lt.cuda.memory_allocated(0)  # what tests before this one left
        row = table.empty(2, sizes, None, lt.float8_e5m2.code, 1, 0)
        assert row.stride() == (2, 1) and row.dtype is lt.float8_e5m2 and lt.cuda.memory_allocated(0) == start + 6
        assert table.stream(0) is None
        with lt.cuda.stream(lt.cuda.Stream("cuda:1")) as side:
            assert table.stream(1) == side.cuda_stream and table.stream(0) is None
        assert table.stream(1) is None
    finally:
        lt.cuda.use_provider(before)
