"""Compiled programs in a child of a process that used the device: the launcher touches nothing there."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from stub_device import StubDevice

import lamina
from lamina_inductor.host.gpu import gpu_launcher

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def error_in_child(call: Callable[[], Any]) -> str:
    source, target = os.pipe()
    child = os.fork()
    if not child:
        said = ""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - it is what is looked at
            said = f"{type(error).__name__}: {error}"
        os.write(target, said.encode())
        os._exit(0)
    os.close(target)
    with os.fdopen(source) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


FORKED = "RuntimeError: Cannot re-initialize CUDA in forked subprocess"


def test_a_compiled_program_in_a_forked_child(device: StubDevice) -> None:
    x = lamina.ones(3).cuda()
    fn = lamina.compile(lambda x: x.sin() + 1)
    before = fn(x).tolist()
    assert error_in_child(lambda: fn(x)).startswith(FORKED)
    assert error_in_child(lambda: lamina.compile(lambda x: x * 3)(x)).startswith(FORKED)
    assert error_in_child(lambda: gpu_launcher().device_info(0)).startswith(FORKED)
    assert fn(x).tolist() == before


def test_error_words_are_memory_of_the_parent(device: StubDevice) -> None:
    x, wrong = lamina.arange(10.0).cuda(), lamina.tensor([99]).cuda()
    fn = lamina.compile(lambda x, i: x[i])
    fn(x, wrong)
    assert error_in_child(lambda: fn(x, wrong)).startswith(FORKED)
    assert not error_in_child(gpu_launcher().check_errors)
    with pytest.raises(IndexError):
        lamina.cuda.synchronize()


def test_programs_go_with_the_child(device: StubDevice) -> None:
    x = lamina.ones(3).cuda()
    programs = [lamina.compile(lambda x: x.cos() + 1)]
    programs[0](x)
    assert not error_in_child(programs.clear)
