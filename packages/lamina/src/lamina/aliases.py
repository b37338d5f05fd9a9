"""``lamina.nn`` and its like: submodules of ``lamina`` that are modules of the layers below, under PyTorch's paths.

``import lamina.nn.functional as F`` finds ``lamina_tensor.nn.functional`` and gives that same module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

__all__ = ["ALIASES", "install"]

ALIASES = {
    "lamina.nn": "lamina_tensor.nn",
    "lamina.optim": "lamina_tensor.optim",
    "lamina.utils": "lamina_tensor.utils",
    "lamina.autograd": "lamina_tensor.autograd",
    "lamina.random": "lamina_tensor.random",
    "lamina.linalg": "lamina_tensor.linalg",
    "lamina.fft": "lamina_tensor.fft",
    "lamina.special": "lamina_tensor.special",
    "lamina.func": "lamina_tensor.func",
    "lamina.cuda": "lamina_tensor.cuda",
    "lamina.backends.cuda": "lamina_tensor.backends.cuda",
    "lamina.backends.cudnn": "lamina_tensor.backends.cudnn",
    "lamina.backends.mkldnn": "lamina_tensor.backends.mkldnn",
    "lamina.backends.mps": "lamina_tensor.backends.mps",
    "lamina.amp": "lamina_tensor.amp",
    "lamina.distributions": "lamina_tensor.distributions",
    "lamina.testing": "lamina_tensor.testing",
    "lamina.fx": "lamina_fx",
}
"""Package paths here and what they stand for."""


class _AliasLoader:
    """Hands out the target module itself. (The base classes of finders and loaders load half of importlib.)"""

    def __init__(self, target: str) -> None:
        self.target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        __import__(self.target)
        module = sys.modules[self.target]
        self.saved = module.__spec__, module.__loader__, module.__package__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just stamped the alias's spec on the target: give it its own back.
        module.__spec__, module.__loader__, module.__package__ = self.saved


class _AliasFinder:
    """Finds names under the aliases."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("lamina."):
            return None
        for alias, real in ALIASES.items():
            if fullname == alias or fullname.startswith(alias + "."):
                name = real + fullname[len(alias) :]
                if find_spec(name) is None:
                    return None
                return ModuleSpec(fullname, _AliasLoader(name), is_package=True)
        return None


def install() -> None:
    """Make the aliases importable (once).

    In front of the other finders: those would find a submodule in the target's folder and load it a second time.
    """
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())
