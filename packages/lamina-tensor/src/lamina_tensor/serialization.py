"""Save and load without pickle: one safetensors file that also holds the structure around the tensors.

Nested dicts, lists, tuples, numbers, strings, None and tensors are kept; each tensor is stored by itself.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from lamina_fx import DType, dtype_of
from lamina_prims.arrays import array_dtype, numpy_dtype

from . import creation
from .tensor import Tensor

__all__ = ["load", "save"]

_KEY = "lamina"
_AS_BYTES = {"bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}


def save(obj: Any, f: str | os.PathLike[str]) -> None:
    """Write an object of tensors, containers and plain values to a file (atomically).

    Raises:
        TypeError: something else is in it; the message says where.
    """
    arrays: dict[str, np.ndarray] = {}
    structure = _pack(obj, arrays, "")
    target = Path(f)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        save_file(arrays, partial, metadata={_KEY: json.dumps(structure)})
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def load(f: str | os.PathLike[str], map_location: Any = None, weights_only: bool = True) -> Any:
    """Read what ``save`` wrote, or the tensors of any safetensors file as a dict.

    Tensors go to the devices that they were on; ``map_location`` names another device, is a dict from devices to
    devices, or a function ``(tensor on the CPU, saved device) -> tensor or None``.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is damaged or of another kind.
    """
    path = Path(f)
    if not path.exists():
        raise FileNotFoundError(f"no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            structure = (file.metadata() or {}).get(_KEY)
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (no mapping)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from None
    if structure is None:
        return {k: _placed(creation.from_numpy(array.copy()), "cpu", map_location) for k, array in arrays.items()}
    return _unpack(json.loads(structure), arrays, map_location)


def _pack(value: Any, arrays: dict[str, np.ndarray], path: str) -> Any:
    if isinstance(value, Tensor):
        key = path or "tensor"
        array = np.array(value.detach().cpu().numpy(), order="C")
        arrays[key] = array.view(_AS_BYTES[value.dtype.name]) if value.dtype.name in _AS_BYTES else array
        entry = {"tensor": key, "dtype": value.dtype.name, "grad": value.requires_grad}
        return entry if value.device.type == "cpu" else {**entry, "device": str(value.device)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Mapping):
        kind = "ordered" if isinstance(value, OrderedDict) else "dict"
        return {kind: [[_pack_key(k, path), _pack(v, arrays, f"{path}.{k}".lstrip("."))] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_pack(v, arrays, f"{path}.{k}".lstrip(".")) for k, v in enumerate(value)]}
    raise TypeError(
        f"save: cannot store a {type(value).__name__} (at {path or 'the top'}); store its state_dict instead"
    )


def _pack_key(key: Any, path: str) -> Any:
    if isinstance(key, str | int):
        return key
    raise TypeError(f"save: dict keys must be strings or ints, got {type(key).__name__} at {path or 'the top'}")


def _placed(made: Tensor, saved: str, map_location: Any) -> Tensor:
    if callable(map_location):
        found = map_location(made, saved)
        return made.to(saved) if found is None else found
    if isinstance(map_location, Mapping):
        return made.to(str(map_location.get(saved, saved)))
    return made.to(saved if map_location is None else map_location)


def _unpack(value: Any, arrays: dict[str, np.ndarray], where: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        dtype = dtype_of(value["dtype"])
        array = arrays[value["tensor"]]
        if dtype.name in _AS_BYTES:
            array = array.view(numpy_dtype(dtype))
        made = _placed(creation.from_numpy(array.copy()), value.get("device", "cpu"), where)
        assert array_dtype(array.dtype) is dtype
        return made.requires_grad_() if value["grad"] else made
    if "dtype" in value:
        return dtype_of(value["dtype"])
    if "list" in value:
        return [_unpack(v, arrays, where) for v in value["list"]]
    if "tuple" in value:
        return tuple(_unpack(v, arrays, where) for v in value["tuple"])
    kind = OrderedDict if "ordered" in value else dict
    return kind((k, _unpack(v, arrays, where)) for k, v in value.get("ordered", value.get("dict")))
