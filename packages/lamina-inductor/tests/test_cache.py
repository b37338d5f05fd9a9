"""The disk cache: damage, missing rights, several processes, eviction, and what a key depends on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from program_builders import elementwise

from lamina_fx import Graph, TensorSpec
from lamina_fx.dtype import float32, float64
from lamina_inductor.artifact import Artifact, ArtifactError
from lamina_inductor.backends.cpp import NoCompiler, compile_program, find_compiled, find_toolchain
from lamina_inductor.cache import ArtifactStore, graph_key

X = np.linspace(-1, 1, 7, dtype=np.float32)


def tanh_program() -> object:
    return elementwise("tanh", float32, float32, 1, 7)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("??/*.so"))


def test_an_entry_is_found_by_its_key_and_by_its_code(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    assert find_compiled("key", store=store) is None
    compile_program(tanh_program(), key="key", store=store)
    found = find_compiled("key", store=store)
    assert found is not None
    np.testing.assert_allclose(found(X)[0], np.tanh(X), rtol=1e-6)
    assert found.kernels[0].name == "k0_tanh" and "lm_tanh" in found.source
    renamed = find_compiled("key", name="another", store=store)
    assert renamed is not None and renamed.name == "another"
    compile_program(tanh_program(), store=store)
    compile_program(tanh_program(), store=store)
    assert len(entries(tmp_path)) == 2  # one by key, one by code


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "garbage"])
def test_damage_is_noticed_and_repaired(tmp_path: Path, damage: str) -> None:
    store = ArtifactStore(tmp_path)
    compile_program(tanh_program(), key="key", store=store)
    (path,) = entries(tmp_path)
    data = path.read_bytes()
    path.unlink()  # a process that has the library open keeps the old file
    broken = {
        "truncate": data[: len(data) // 2],
        "flip": data[:1000] + bytes([data[1000] ^ 1]) + data[1001:],
        "empty": b"",
        "garbage": os.urandom(5000),
    }[damage]
    path.write_bytes(broken)
    assert find_compiled("key", store=store) is None
    artifact = compile_program(tanh_program(), key="key", store=store)
    np.testing.assert_allclose(artifact(X)[0], np.tanh(X), rtol=1e-6)
    assert find_compiled("key", store=store) is not None


def test_a_whole_file_that_does_not_load_is_replaced(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)

    def not_a_library(path: Path) -> bytes:
        path.write_bytes(b"not an ELF file" * 100)
        return b"{}"

    compile_program(tanh_program(), key="key", store=store)
    (path,) = entries(tmp_path)
    store.add(path.parent.name + path.stem, not_a_library)
    assert find_compiled("key", store=store) is None
    np.testing.assert_allclose(compile_program(tanh_program(), key="key", store=store)(X)[0], np.tanh(X), rtol=1e-6)


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)

    def fail(path: Path) -> bytes:
        path.write_bytes(b"half")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        store.find_or_add("ab" * 32, fail)
    assert not list(tmp_path.glob("??/*")) and not list(tmp_path.glob("??/.new-*"))


def test_a_folder_that_cannot_be_written_works_with_one_note(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("this is no folder")
    store = ArtifactStore(blocked / "cache")
    with pytest.warns(UserWarning, match="LAMINA_CACHE_DIR") as notes:
        first = compile_program(tanh_program(), store=store)
        second = compile_program(tanh_program(), store=store)
    assert len([n for n in notes if "LAMINA_CACHE_DIR" in str(n.message)]) == 1
    np.testing.assert_array_equal(first(X)[0], second(X)[0])


def test_the_least_used_entries_go_first(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, limit=3000)
    for i in range(33):
        store.add(f"{i:064x}", lambda path: (path.write_bytes(b"x" * 900), b"")[1])
    left = entries(tmp_path)
    assert len(left) == 3 and sum(p.stat().st_size for p in left) <= 3000
    assert store.find(f"{32:064x}") is not None


_RACE = """
    import sys
    sys.path.insert(0, {tests!r})
    import numpy as np
    from pathlib import Path
    from lamina_fx.dtype import float32
    from lamina_inductor.backends.cpp import compile_program
    from program_builders import elementwise
    artifact = compile_program(elementwise("cosh", float32, float32, 1, 7), key="race")
    x = np.linspace(-1, 1, 7, dtype=np.float32)
    assert np.allclose(artifact(x)[0], np.cosh(x), rtol=1e-6)
"""


def test_processes_at_once_share_one_entry(tmp_path: Path) -> None:
    script = textwrap.dedent(_RACE.format(tests=str(Path(__file__).parent)))
    env = {**os.environ, "LAMINA_CACHE_DIR": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", script], env=env) for _ in range(4)]
    assert [p.wait(60) for p in running] == [0] * 4
    assert len(entries(tmp_path)) == 1 and not list(tmp_path.glob("??/.new-*"))


def graph(shape: tuple[int, ...] = (4,), value: float = 1.0, line: int = 1) -> Graph:
    result = Graph()
    x = result.placeholder("x", spec=TensorSpec(shape, float32))
    y = result.call_function("add", (x, value), spec=TensorSpec(shape, float32))
    y.meta["source"] = ("model.py", line, "f")
    result.output((y,))
    return result


def test_keys_follow_content() -> None:
    assert graph_key(graph()) == graph_key(graph())
    different = [graph((5,)), graph(value=2.0)]
    assert len({graph_key(g) for g in (graph(), *different)}) == 3
    assert graph_key(graph(), {"name": "a"}) != graph_key(graph(), {"name": "b"})
    constant, other = graph(), graph()
    constant.attributes["w"], other.attributes["w"] = np.zeros(3), np.ones(3)
    assert graph_key(constant) != graph_key(other)


def test_save_and_load(tmp_path: Path) -> None:
    artifact = compile_program(elementwise("exp", float64, float64, 1, 5), store=ArtifactStore(tmp_path / "cache"))
    path = tmp_path / "exp.lamina"
    artifact.save(path)
    x = np.arange(5.0)
    np.testing.assert_allclose(Artifact.load(path)(x)[0], np.exp(x))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match="damaged"):
        Artifact.load(path)
    with pytest.raises(FileNotFoundError):
        Artifact.load(tmp_path / "missing")


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from lamina_inductor import fallback
    from lamina_inductor.backend import CppBackend

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("LAMINA_CXX", raising=False)
    assert find_toolchain() is None
    with pytest.raises(NoCompiler, match="LAMINA_CXX"):
        compile_program(tanh_program())
    monkeypatch.setenv("LAMINA_CXX", "/nowhere/g++")
    with pytest.raises(NoCompiler, match="LAMINA_CXX='/nowhere/g\\+\\+' is none; set"):
        compile_program(tanh_program())
    monkeypatch.delenv("LAMINA_CXX")
    fallback._note.cache_clear()
    with pytest.warns(UserWarning, match="reference interpreter"):
        slow = CppBackend().compile(graph())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert CppBackend().compile(graph()).kernels == ()
    np.testing.assert_array_equal(slow(X[:4])[0], X[:4] + 1)
    with pytest.raises(RuntimeError, match="cannot be saved"):
        slow.save(tmp_path / "x")


def test_a_compiler_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from lamina_inductor.backends.cpp import CompileError

    fake = tmp_path / "g++"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo "g++ 99"; exit 0; }\necho "no space left" >&2\nexit 4\n')
    fake.chmod(0o755)
    monkeypatch.setenv("LAMINA_CXX", str(fake))
    with pytest.raises(CompileError, match="no space left"):
        compile_program(tanh_program(), store=ArtifactStore(tmp_path / "cache"))
