"""Modules as a front end has them: parameters, submodules, a call that runs ``forward``."""

from __future__ import annotations

import numpy as np


class Module:
    def __call__(self, *args):
        return self.forward(*args)

    def forward(self, x):
        raise NotImplementedError

    def named_children(self):
        return [(k, v) for k, v in vars(self).items() if isinstance(v, Module)]

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self, prefix=""):
        for path, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, np.ndarray):
                    yield f"{path}.{name}" if path else name, value


class Linear(Module):
    def __init__(self, size):
        self.weight = np.arange(size * size, dtype=np.float64).reshape(size, size)

    def forward(self, x):
        return x @ self.weight


class Block(Module):
    def __init__(self):
        self.first, self.second = Linear(3), Linear(3)
        self.scale = np.array([1.0, 2.0, 3.0])

    def forward(self, x):
        return self.second(self.first(x) + 1) * self.scale


Block.__module__ = "user_code"
