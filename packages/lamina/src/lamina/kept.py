"""What a record keeps of graphs and artifacts: no memory of tensors, and no program that nobody can call any more."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamina_fx import Graph
from lamina_prims.arrays import is_array, spec_of
from lamina_tensor import Tensor

__all__ = ["GoneArtifact", "KeptArtifact", "keep_artifact", "without_arrays"]

_SMALL = 4096
"""Bytes of a constant that is kept, as an array: most are a few numbers of the program's text."""


@dataclass(frozen=True)
class GoneArtifact:
    """In place of an artifact, or of the function of one, that went with the function it was compiled for.

    kernels, source: of the artifact.
    """

    name: str
    kernels: tuple[Any, ...]
    source: str

    def __call__(self, *inputs: Any) -> Any:
        """Refuses.

        Raises:
            RuntimeError: the program is gone.
        """
        raise RuntimeError(f"the program {self.name} went with the function that it was compiled for; compile it again")


@dataclass(frozen=True)
class KeptArtifact:
    """An artifact as long as what it runs is alive. ``find`` gives it, or None; ``gone`` stands in its place then."""

    find: Callable[[], Any]
    gone: Any

    def get(self) -> Any:
        """The artifact, or what is left of it: calling that refuses."""
        found = self.find()
        return self.gone if found is None else found


def keep_artifact(name: str, artifact: Any) -> KeptArtifact:
    """Keep an artifact weakly, what is to be read of it strongly."""
    gone = GoneArtifact(name, tuple(getattr(artifact, "kernels", ())), str(getattr(artifact, "source", "")))
    if not hasattr(artifact, "over"):  # of another backend
        return KeptArtifact(_weakly(artifact), gone)
    function, text = _weakly(artifact.function), artifact.over(gone)

    def find() -> Any:
        alive = function()
        return None if alive is None else text.over(alive)

    return KeptArtifact(find, text)


def _weakly(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # its class allows no weak references
        return lambda: None


def without_arrays(graph: Graph) -> Graph:
    """The graph itself where it holds no arrays, else a copy: small ones of the host are copied, others are specs."""
    if not _holds_arrays(graph):
        return graph
    copied = graph.copy()
    _drop_arrays(copied)
    return copied


def _holds_arrays(graph: Graph) -> bool:
    return any(
        _holds_arrays(v) if isinstance(v, Graph) else isinstance(v, Tensor) or is_array(v)
        for v in graph.attributes.values()
    )


def _drop_arrays(graph: Graph) -> None:
    for name, value in graph.attributes.items():
        if isinstance(value, Graph):
            _drop_arrays(value)
        elif isinstance(value, Tensor) or is_array(value):
            graph.attributes[name] = _described(value)


def _described(value: Any) -> Any:
    spec = value.spec if isinstance(value, Tensor) else spec_of(value)
    if spec.device.type != "cpu" or value.nbytes > _SMALL:
        return spec
    return np.array(value.detach().numpy() if isinstance(value, Tensor) else value)
