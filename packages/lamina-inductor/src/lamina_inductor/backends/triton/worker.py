"""A process that compiles kernels: it runs ``main``.

Reads pickled requests from its standard input, each after its length, and writes answers the same way. It never touches
a GPU, so it may be started at any time; its parent is the only one that talks to it.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from typing import Any, BinaryIO

__all__ = ["main", "receive", "send"]

_LENGTH = struct.Struct("<Q")


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


def main() -> None:
    """Compile until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what triton prints must not come between answers
    from .compile import compile_ptx, import_triton

    import_triton()
    while True:
        try:
            kernel, sm, options = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: Any = compile_ptx(kernel, sm, **options)
        except Exception as error:  # noqa: BLE001 - the parent raises it
            answer = error
        try:
            send(answers, answer)
        except (pickle.PicklingError, TypeError, AttributeError):
            send(answers, RuntimeError(f"{type(answer).__name__}: {answer}"))
