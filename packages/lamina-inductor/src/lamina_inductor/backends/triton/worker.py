"""Triton's compiler behind plain values: requests in, machine code out; and a process that answers them.

The process runs this file by itself. It imports nothing of lamina, so that it is ready in the time that triton takes to
load, and it never touches a GPU, so it may be started at any time. It reads pickled requests from its standard input,
each after its length, and writes answers the same way; its parent is the only one that talks to it.
"""

from __future__ import annotations

import functools
import hashlib
import linecache
import os
import pickle
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

__all__ = ["Request", "answer", "load_text", "main", "receive", "send", "source_kind"]

Request = tuple[str, str, tuple[tuple[str, str], ...], dict[str, Any], tuple[str, ...], dict[str, Any], int]
"""A kernel's name, its module's text, parameters and their types, values of ``tl.constexpr`` parameters, parameters
that are multiples of 16, options, compute capability."""

_LENGTH = struct.Struct("<Q")
_ALIGNED = [["tt.divisibility", 16]]


def send(stream: BinaryIO, value: Any) -> None:
    """Write a value."""
    data = pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read a value.

    Raises:
        EOFError: the other side is gone.
    """
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("the other process has ended")
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))


def load_text(name: str, module: str) -> Any:
    """The function ``name`` of a module's text, as ``@triton.jit`` makes it."""
    file = f"<lamina {name} {hashlib.sha256(module.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(module), None, module.splitlines(keepends=True), file)  # triton reads the text
    namespace: dict[str, Any] = {"__name__": "lamina_inductor.generated", "__file__": file}
    exec(compile(module, file, "exec"), namespace)
    return namespace[name]


def answer(request: Request) -> dict[str, Any]:
    """Machine code, and what the compiler says of it."""
    import triton  # type: ignore[import-not-found]  # optional dependency
    from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found]  # optional

    name, module, parameters, constants, aligned, options, sm = request
    names = [n for n, _ in parameters]
    signature = dict(parameters) | dict.fromkeys(constants, "constexpr")
    values = {(len(names) + k,): value for k, value in enumerate(constants.values())}
    attributes = {(k,): _ALIGNED for k, n in enumerate(names) if n in aligned}
    function = load_text(name, module)
    source = source_kind(function)(function, signature, values, attributes)
    with _short_cache_key():
        result = triton.compile(source, target=GPUTarget("cuda", sm, 32), options=options)
    metadata = result.metadata
    return {
        "ptx": result.asm["ptx"],
        "cubin": result.asm["cubin"],
        "shared": int(metadata.shared),
        "warps": int(metadata.num_warps),
        "clusters": int(getattr(metadata, "num_ctas", 1)),
        "scratch": int(getattr(metadata, "global_scratch_size", 0)),
        "descriptors": [dict(d) for d in getattr(metadata, "tensordesc_meta", None) or ()],
        "cooperative": bool(getattr(metadata, "launch_cooperative_grid", False)),
    }


def source_kind(function: Any) -> Any:
    """What triton calls the text of such a function: Triton, or Gluon, its lower language."""
    if getattr(function, "is_gluon", bool)():
        from triton.experimental.gluon._runtime import GluonASTSource  # type: ignore[import-not-found]  # optional

        return GluonASTSource
    from triton.compiler import ASTSource  # type: ignore[import-not-found]  # optional

    return ASTSource


_swapped = threading.Lock()


@contextmanager
def _short_cache_key() -> Iterator[None]:
    """Inside, triton's cache tells its own versions apart by size and time of its library, not by its 400 MB content:
    half a second in each process."""
    from triton.runtime import cache  # type: ignore[import-not-found]  # optional

    with _swapped:
        whole = getattr(cache, "triton_key", None)
        if whole is not None:
            cache.triton_key = _library_key
        try:
            yield
        finally:
            if whole is not None:
                cache.triton_key = whole


@functools.cache
def _library_key() -> str:
    import triton  # type: ignore[import-not-found]  # optional
    from triton._C import libtriton  # type: ignore[import-not-found]  # optional

    found = os.stat(libtriton.__file__)
    return f"lamina {triton.__version__} {found.st_size} {found.st_mtime_ns}"


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what triton prints must not come between answers
    import triton.compiler.code_generator  # type: ignore[import-not-found]  # noqa: F401 - while there is time

    while True:
        try:
            request = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            found: Any = answer(request)
        except Exception as error:  # noqa: BLE001 - the parent raises it
            found = f"{type(error).__name__}: {error}"
        send(answers, found)


if __name__ == "__main__":
    main()
