"""Tensors of a module that are computed from others whenever they are read: ``register_parametrization``.

>>> import lamina_tensor as lt
>>> from lamina_tensor import nn
>>> from lamina_tensor.nn.utils import parametrize
>>> class Positive(nn.Module):
...     def forward(self, x): return x.exp()
...     def right_inverse(self, w): return w.log()
>>> layer = parametrize.register_parametrization(nn.Linear(2, 1, bias=False), "weight", Positive(), unsafe=True)
>>> layer.weight = lt.ones(1, 2)
>>> layer.weight.tolist(), layer.parametrizations.weight.original.tolist()
([[1.0, 1.0]], [[0.0, 0.0]])
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...autograd.grad_mode import no_grad
from ...tensor import Tensor
from ..container import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "type_before_parametrizations",
]  # fmt: skip


class _Cache:
    depth = 0
    values: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed when it is first read, and kept."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order, and what it is computed from: ``original``, or
    ``original0``, ``original1``, ... where the first one's ``right_inverse`` gives several tensors."""

    def __init__(self, modules: list[Module], original: Tensor) -> None:
        super().__init__(modules)
        given = _inverse(modules, original)
        self.is_tensor = isinstance(given, Tensor)
        for name, value in self._named_values(given):
            if isinstance(original, Parameter):
                setattr(self, name, value if isinstance(value, Parameter) else Parameter(value, original.requires_grad))
            else:
                self.register_buffer(name, value)

    def _named_values(self, given: Any) -> list[tuple[str, Tensor]]:
        return [("original", given)] if self.is_tensor else [(f"original{k}", v) for k, v in enumerate(given)]

    def originals(self) -> list[Tensor]:
        """The tensors from which the value is computed."""
        own = (*self._parameters.items(), *self._buffers.items())
        return [value for name, value in own if name.startswith("original") and value is not None]

    def forward(self) -> Tensor:
        """The value."""
        first, *rest = self
        value = first(*self.originals())
        for module in rest:
            value = module(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Change the originals so that the value becomes this one, as far as the parametrizations can.

        Raises:
            NotImplementedError: one of them has no ``right_inverse``.
        """
        with no_grad():
            given = _inverse(list(self), value, demand=True)
            for (_, new), original in zip(self._named_values(given), self.originals(), strict=True):
                original.copy_(new)


def _inverse(modules: list[Module], value: Any, demand: bool = False) -> Any:
    with no_grad():
        for module in reversed(modules):
            if hasattr(module, "right_inverse"):
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:  # of an original that nobody assigned
                    if demand:
                        raise
            elif demand:
                raise NotImplementedError(f"the parametrization {type(module).__name__} has no right_inverse")
    return value


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let ``module.tensor_name`` be ``parametrization(original)`` from now on; several are applied in order.

    ``unsafe``: it may change the tensor's shape or dtype.

    Raises:
        ValueError: there is no such parameter or buffer, or a safe parametrization changes shape or dtype.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        found: ParametrizationList = module.parametrizations[tensor_name]
        value = getattr(module, tensor_name)
        _check(tensor_name, value, parametrization(value), unsafe)
        found.append(parametrization)
        return module
    original = module._parameters.get(tensor_name, module._buffers.get(tensor_name))
    if original is None:
        raise ValueError(f"module {type(module).__name__} does not have a parameter, a buffer, or a parametrized "
                         f"element with name {tensor_name!r}")  # fmt: skip
    made = ParametrizationList([parametrization], original)
    _check(tensor_name, original, made(), unsafe)
    if not is_parametrized(module):
        _change_class(module)
        module.parametrizations = ModuleDict()
    delattr(module, tensor_name)
    module.parametrizations[tensor_name] = made
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def _check(name: str, before: Tensor, after: Any, unsafe: bool) -> None:
    if unsafe or (isinstance(after, Tensor) and after.shape == before.shape and after.dtype is before.dtype):
        return
    have = f"{after.dtype} {tuple(after.shape)}" if isinstance(after, Tensor) else type(after).__name__
    raise ValueError(
        f"registering a parametrization may not change the shape or dtype of {name!r} ({before.dtype} "
        f"{tuple(before.shape)}, made {have}) unless the flag `unsafe` is enabled"
    )


def _change_class(module: Module) -> None:
    """Give the module a class of its own, which has properties in place of its parametrized tensors."""
    kind = type(module)
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {"__module__": kind.__module__})


def _property(name: str) -> property:
    def read(self: Module) -> Tensor:
        found = self.parametrizations[name]
        if not _Cache.depth:
            return found()
        key = id(self), name
        if key not in _Cache.values:
            _Cache.values[key] = found()
        return _Cache.values[key]

    def write(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Has the module a parametrized tensor (of this name)."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor an ordinary one: with the value that it has now, or (not ``leave_parametrized``) the original.

    Raises:
        ValueError: it is not parametrized, or has several originals, of which none is its value.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"module {type(module).__name__} does not have a parametrization on {tensor_name!r}")
    found: ParametrizationList = module.parametrizations[tensor_name]
    first = found.originals()[0]
    if leave_parametrized:
        with no_grad():
            value = found().detach().clone()
        kept: Tensor = Parameter(value, first.requires_grad) if isinstance(first, Parameter) else value
    elif found.is_tensor:
        kept = first
    else:
        raise ValueError("cannot leave unparametrized a tensor that is computed from several tensors")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    if isinstance(kept, Parameter):
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, kept)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
