"""The base class of all layers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..autograd.grad_mode import is_grad_enabled
from ..namespace import root
from ..tensor import Tensor
from .backward_hooks import BackwardHooks, run_with_backward_hooks
from .hooks import RemovableHandle
from .parameter import Parameter

__all__ = ["IncompatibleKeys", "Module"]


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict`` did not find, and what it could not place."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"{type(self).__name__}(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class Module:
    """A layer or a model: parameters, buffers, submodules and a ``forward``.

    Assigning a ``Parameter`` or a ``Module`` to an attribute registers it, as in ``torch.nn.Module``.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        set_plain = super().__setattr__
        set_plain("training", True)
        set_plain("_parameters", {})
        set_plain("_buffers", {})
        set_plain("_non_persistent_buffers", set())
        set_plain("_modules", {})
        set_plain("_forward_pre_hooks", {})
        set_plain("_forward_hooks", {})
        set_plain("_backward_hooks", None)

    # -- calling ----------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; every subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """``forward`` with the hooks around it."""
        if not self._forward_pre_hooks and not self._forward_hooks and self._backward_hooks is None:
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_pre_hooks.values()):
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is not None and with_kwargs:
                args, kwargs = changed
            elif changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        hooks = self._backward_hooks
        if hooks is None or not is_grad_enabled():
            result = self.forward(*args, **kwargs)
        else:
            result = run_with_backward_hooks(self, hooks, args, kwargs)
        for hook, with_kwargs in list(self._forward_hooks.values()):
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; what it returns replaces the arguments.

        ``with_kwargs``: ``hook(module, args, kwargs)``, which returns None or new (args, kwargs).
        """
        return _add_hook(self._forward_pre_hooks, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, result)`` after ``forward``; what it returns replaces the result.

        ``with_kwargs``: ``hook(module, args, kwargs, result)``.
        """
        return _add_hook(self._forward_hooks, (hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the module's inputs are known.

        Both are tuples, with None for what is no tensor or needs no gradient; a returned tuple replaces grad_input.
        """
        return _add_hook(self._make_backward_hooks().after, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward; a returned tuple replaces grad_output."""
        return _add_hook(self._make_backward_hooks().before, hook, prepend)

    def _make_backward_hooks(self) -> BackwardHooks:
        if self._backward_hooks is None:
            self._backward_hooks = BackwardHooks({}, {})
        return self._backward_hooks

    # -- attributes -------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            table = state.get(kind)
            if table is not None and name in table:
                return table[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in state:
                raise AttributeError("cannot assign a module before Module.__init__() was called")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif name in state.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign {type(value).__name__} as parameter {name!r} (Parameter or None)")
            self._parameters[name] = None
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign {type(value).__name__} as child module {name!r} (Module or None)")
            self._modules[name] = None
        elif name in state.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign {type(value).__name__} as buffer {name!r} (Tensor or None)")
            self._buffers[name] = value
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _forget(self, name: str, keep: str) -> None:
        """Drop a name from everywhere but the table ``keep``, where a new value takes the old one's place in order."""
        self.__dict__.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep:
                self.__dict__.get(kind, {}).pop(name, None)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name.

        Raises:
            AttributeError: before ``Module.__init__``.
            KeyError: a bad or taken name.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() was called")
        _check_name("parameter", name, hasattr(self, name) and name not in self._parameters)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() was called")
        _check_name("buffer", name, hasattr(self, name) and name not in self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign {type(tensor).__name__} as buffer {name!r} (Tensor or None)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers.discard if persistent else self._non_persistent_buffers.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module")
        _check_name("module", name, hasattr(self, name) and name not in self._modules)
        self._modules[name] = module

    register_module = add_module

    # -- walking ----------------------------------------------------------------------------------

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below it, each once, with dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        for _, module in self.named_children():
            yield module

    def _named(self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()  # of the tensors: they hash and compare by identity here
        found = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]
        for path, module in found:
            for name, value in getattr(module, kind).items():
                if value is None or (remove_duplicate and value in seen):
                    continue
                seen.add(value)
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters with dotted names."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with dotted names."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path.

        Raises:
            AttributeError: there is none.
        """
        module: Any = self
        for name in filter(None, target.split(".")):
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"{name!r} in {target!r} is not a module")
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._parameters.get(name)
        if found is None:
            raise AttributeError(f"{target!r} is not a parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._buffers.get(name)
        if found is None:
            raise AttributeError(f"{target!r} is not a buffer")
        return found

    # -- state ------------------------------------------------------------------------------------

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Tensor]:
        """All parameters and persistent buffers by dotted name, detached (unless ``keep_vars``) but not copied."""
        state: OrderedDict[str, Tensor] = OrderedDict()
        for path, module in self.named_modules(set(), prefix.rstrip(".")):
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                if value is not None and name not in module._non_persistent_buffers:
                    state[f"{path}.{name}" if path else name] = value if keep_vars else value.detach()
        return state

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values into this module's parameters and buffers (``assign``: take the tensors themselves).

        Raises:
            RuntimeError: with ``strict``, missing or unexpected keys; always, shapes that differ. Nothing has been
                copied then.
        """
        own = self.state_dict(keep_vars=True)
        missing = [key for key in own if key not in state_dict]
        unexpected = [key for key in state_dict if key not in own]
        problems = []
        if strict and missing:
            problems.append(f"missing keys: {', '.join(missing)}")
        if strict and unexpected:
            problems.append(f"unexpected keys: {', '.join(unexpected)}")
        for key, value in own.items():
            if key in state_dict and tuple(state_dict[key].shape) != tuple(value.shape):
                have, want = tuple(state_dict[key].shape), tuple(value.shape)
                problems.append(f"{key} has the shape {have} in the state, {want} in the module")
        if problems:
            raise RuntimeError(f"load_state_dict of {type(self).__name__}: " + "; ".join(problems))
        from ..autograd.grad_mode import no_grad

        with no_grad():
            for key, value in own.items():
                if key not in state_dict:
                    continue
                if assign:
                    self._assign(key, state_dict[key], value)
                else:
                    value.copy_(state_dict[key])
        return IncompatibleKeys(missing, unexpected)

    def _assign(self, key: str, value: Tensor, old: Tensor) -> None:
        path, _, name = key.rpartition(".")
        module = self.get_submodule(path)
        if name in module._parameters:
            module._parameters[name] = value if isinstance(value, Parameter) else Parameter(value, old.requires_grad)
        else:
            module._buffers[name] = value

    def train(self, mode: bool = True) -> Module:
        """Set training mode here and below.

        Raises:
            ValueError: ``mode`` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Module:
        """Set evaluation mode here and below."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Set ``requires_grad`` of every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop (or zero) the gradients of all parameters."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.detach_().zero_()

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Call ``fn`` on every module below, then on this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Module:
        for module in self.children() if recurse else ():
            module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                parameter.data = fn(parameter.data)
                if parameter.grad is not None:
                    parameter.grad = fn(parameter.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Convert floating-point parameters and buffers to a dtype, and everything to a device."""

        def convert(tensor: Tensor) -> Tensor:
            if tensor.ndim not in (4, 5):  # others have no channels to be last
                moved = tensor.to(*args, **{k: v for k, v in kwargs.items() if k != "memory_format"})
            else:
                moved = tensor.to(*args, **kwargs)
            if moved.dtype is not tensor.dtype and not tensor.dtype.is_floating_point:
                return tensor.to(moved.device)
            return moved

        return self._apply(convert)

    def float(self) -> Module:
        """Floating-point state as float32."""
        return self._apply(lambda t: t.float() if t.dtype.is_floating_point else t)

    def double(self) -> Module:
        """Floating-point state as float64."""
        return self._apply(lambda t: t.double() if t.dtype.is_floating_point else t)

    def half(self) -> Module:
        """Floating-point state as float16."""
        return self._apply(lambda t: t.half() if t.dtype.is_floating_point else t)

    def bfloat16(self) -> Module:
        """Floating-point state as bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.dtype.is_floating_point else t)

    def cpu(self) -> Module:
        """State in main memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Module:
        """State on a GPU. RuntimeError: there is none."""
        return self._apply(lambda t: t.cuda(device))

    def type(self, dst_type: Any) -> Module:
        """All state in a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Module:
        """State on a device, with whatever is in its memory: for modules made on ``meta``."""
        return self._apply(lambda t: root.empty_like(t, device=device), recurse)

    def compile(self, **options: Any) -> None:
        """Compile ``forward`` in place; the module and its keys stay as they are. Needs the package ``lamina``."""
        import lamina  # optional: the whole stack, not a dependency of the eager layer

        self.forward = lamina.compile(self.forward, **options)

    # -- printing ---------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands in the parentheses of ``repr`` before the submodules."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        extra = self.extra_repr()
        if not lines:
            return f"{self._get_name()}({extra})"
        body = ([extra] if extra else []) + lines
        return f"{self._get_name()}(\n  " + "\n  ".join(body) + "\n)"


def _add_hook(hooks: dict[int, Any], hook: Any, first: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if first:
        for key in [k for k in hooks if k != handle.id]:
            hooks[key] = hooks.pop(key)
    return handle


def _check_name(kind: str, name: str, taken: bool) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string, got {type(name).__name__}")
    if "." in name or not name:
        raise KeyError(f"{kind} name can't be empty or contain '.': {name!r}")
    if taken:
        raise KeyError(f"attribute {name!r} already exists")
