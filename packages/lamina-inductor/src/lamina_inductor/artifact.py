"""``Artifact``: a compiled graph, callable, with its kernels and source to look at, and storable as one file."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lamina_fx import dtype_of
from lamina_fx.symbolic import Expr
from lamina_prims import operator

from .cache.saved import ArtifactError, copy_entry, saved_entry
from .cache.store import Entry
from .host.arguments import adapter, array_at
from .host.description import Description, KernelInfo, from_bytes
from .host.threads import launcher, load_blas
from .ir.program import HostCall, Operand, check_text

__all__ = ["Artifact", "ArtifactError", "read_description"]


_PRODUCTS = ("h->gemm(", "h->convolution(")
"""Steps of the host program that may call BLAS."""


class Artifact:
    """A compiled graph. Call it with tensors or arrays, in the order of the graph's placeholders; it returns a tuple.

    Results are tensors of the front end whose tensors came in, NumPy arrays when arrays came in.

    Attributes:
        name: of the graph.
        kernels: the generated kernels, with their C++ and what was fused into each.
        source: the whole generated C++.
        function: what a call runs; calling it directly saves a Python frame.
    """

    __slots__ = ("_path", "description", "function", "kernels", "name", "source")

    def __init__(self, description: Description, path: Path, function: Callable[..., tuple[Any, ...]]) -> None:
        self.description = description
        self.name = description.name
        self.kernels: tuple[KernelInfo, ...] = description.kernels
        self.source = description.source
        self.function = function
        self._path = path

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the graph."""
        return self.function(*inputs)

    def __repr__(self) -> str:
        return f"<Artifact {self.name}: {len(self.kernels)} kernels, {len(self.description.inputs)} inputs>"

    def over(self, function: Callable[..., tuple[Any, ...]]) -> Artifact:
        """The same artifact with this function to run, and without constants, which its own function holds."""
        return Artifact(replace(self.description, constants=()), self._path, function)

    @property
    def path(self) -> Path:
        """The library's file."""
        return self._path

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact as one file. It runs on machines with the same processor features and C library."""
        copy_entry(self._path, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Artifact:
        """Read what ``save`` wrote.

        Raises:
            FileNotFoundError: no such file.
            ArtifactError: the file is damaged or none of ours.
        """
        return Artifact.open(saved_entry(path))

    @staticmethod
    def open(entry: Entry, description: Description | None = None) -> Artifact:
        """The artifact of a cache entry.

        Raises:
            ArtifactError: the entry cannot be loaded.
        """
        if description is None:
            description = read_description(entry)
        return Artifact(description, entry.path, _load(entry, description))


def read_description(entry: Entry) -> Description:
    """What is stored beside the code.

    Raises:
        ArtifactError: it cannot be read.
    """
    try:
        return from_bytes(entry.description)
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"the description in {entry.path} cannot be read ({error}); compile again") from error


def _load(entry: Entry, description: Description) -> Callable[..., tuple[Any, ...]]:
    path, handle = str(entry.path), None
    try:
        return _program(path, description)
    except OSError as error:
        if ("permitted" not in str(error) and "denied" not in str(error)) or not hasattr(os, "memfd_create"):
            raise ArtifactError(f"{entry.path} cannot be loaded: {error}") from error
    # The cache lies on a file system that runs no code: load a copy from memory.
    handle = os.memfd_create(description.name)
    try:
        os.write(handle, entry.path.read_bytes()[: entry.library_bytes])
        return _program(f"/proc/self/fd/{handle}", description)
    except OSError as error:
        raise ArtifactError(f"{entry.path} cannot be loaded: {error}") from error
    finally:
        os.close(handle)


def _program(path: str, description: Description) -> Callable[..., tuple[Any, ...]]:
    inputs = [None if row is None else (dtype_of(row[1]).code, row[2], row[3]) for row in description.inputs]
    rows = [None if row is None else (row[0], dtype_of(row[1]), row[3]) for row in description.inputs]
    if any(step in description.source for step in _PRODUCTS):
        load_blas()
    return launcher().Program(
        name=description.name,
        path=path,
        inputs=tuple(inputs),
        outputs=tuple([(dtype_of(name).code, ndim) for name, ndim in description.outputs]),
        sizes=tuple([(number, dim) for _, number, dim in description.sizes]),
        numbers=description.numbers,
        results=description.results,
        constants=description.constants,
        host_call=host_caller(description),
        adapt=adapter(description.name, rows),
        fail=_failure(description),
        release_gil=description.release_gil,
    )


def _failure(description: Description) -> Callable[[int, tuple[int, ...]], None]:
    """What the launcher calls when the program returns an error word: the number of a check and the wrong index."""
    known = {number: rest for number, *rest in description.checks}
    symbols = [name for name, _, _ in description.sizes]

    def fail(word: int, sizes: tuple[int, ...]) -> None:
        if word >> _INDEX_BITS not in known:
            raise RuntimeError(f"{description.name} failed with error word {word}")
        error, template, size = known[word >> _INDEX_BITS]
        text = check_text(template, _index_of(word), _evaluate(size, dict(zip(symbols, sizes, strict=True))))
        raise getattr(builtins, error, RuntimeError)(text)

    return fail


_INDEX_BITS = 48


def _index_of(word: int) -> str:
    """The index in an error word, as ``lm_bad_index`` writes it: the largest stands for all above."""
    middle = 1 << (_INDEX_BITS - 1)
    place = word & (2 * middle - 1)
    index = place - middle if place >= middle else -place
    return f"{index} or beyond" if abs(index) == middle - 1 else str(index)


def host_caller(description: Description) -> Callable[[int, Sequence[int], Sequence[int]], None]:
    """What the launcher calls for steps that run an operator's reference: ``(step, addresses, sizes)``."""
    names = [name for name, _, _ in description.sizes]

    def call(index: int, addresses: Sequence[int], sizes: Sequence[int]) -> None:
        _run_reference(description.host_calls[index], iter(addresses), dict(zip(names, sizes, strict=True)))

    return call


def _run_reference(step: HostCall, addresses: Any, sizes: dict[str, int]) -> None:
    def value(item: Any) -> Any:
        if type(item) is Operand:
            return view(item)
        if isinstance(item, Expr):
            return _evaluate(item, sizes)
        if type(item) in (tuple, list):
            return type(item)([value(i) for i in item])
        if type(item) is dict:
            return {k: value(v) for k, v in item.items()}
        return item

    def view(operand: Operand) -> Any:
        shape = [_evaluate(s, sizes) for s in operand.shape]
        strides = [_evaluate(s, sizes) for s in operand.strides]
        return array_at(next(addresses), operand.dtype, shape, strides)

    args, kwargs = value(step.args), value(dict(step.kwargs))
    outs = [None if out is None else view(out) for out in step.outs]
    results = operator(step.operator)(*args, **kwargs)
    for out, result in zip(outs, results if isinstance(results, (tuple, list)) else (results,), strict=True):
        if out is not None:
            out[...] = result


def _evaluate(expr: Any, sizes: dict[str, int]) -> int:
    if not isinstance(expr, Expr):
        return expr
    return expr.evaluate({s: sizes[s.name] for s in expr.free_symbols})
