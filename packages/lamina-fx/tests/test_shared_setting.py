"""Settings that several threads change together."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from lamina_fx.collector import collect_young, collector_paused
from lamina_fx.shared_setting import SharedSetting


class Node:
    """What can stand in a cycle."""

    self: Node


def test_last_to_leave_restores():
    value = ["plain"]

    def change():
        before, value[0] = value[0], "changed"
        return before

    setting = SharedSetting(change, lambda before: value.__setitem__(0, before))
    entered, leave = threading.Event(), threading.Event()

    def first():
        with setting:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with setting:
        leave.set()
        thread.join()
        assert value == ["changed"]  # the first to enter has left
    assert value == ["plain"]


def test_errors_restore_too():
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collector_paused:
        assert not gc.isenabled()
        _ = 1 / 0
    assert gc.isenabled()


def test_who_switched_the_collector_off_finds_it_off():
    gc.disable()
    try:
        with collector_paused:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_young_garbage_is_collected_in_a_pause_unless_the_collector_was_off():
    def left() -> bool:
        """Is a cycle still there when ``collect_young`` has been called?"""
        node = Node()
        node.self = node
        reference = weakref.ref(node)
        del node
        collect_young()
        return reference() is not None

    with collector_paused:
        assert not left()
    gc.disable()
    try:
        with collector_paused:
            assert left()
    finally:
        gc.enable()
