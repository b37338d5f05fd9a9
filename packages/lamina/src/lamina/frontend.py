"""lamina_tensor as seen by capture: the ``Frontend`` of lamina_dynamo.

Fakes are real tensors without data, so views, ``.grad``, versions and ``requires_grad`` behave as in eager. A
call of the front end's functions runs on fakes under a mode that sees each operator: those become the nodes.
In-place methods, ``backward`` and ``.grad`` stand in the graph as themselves.
"""

from __future__ import annotations

import operator as python_operators
import os
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

import ml_dtypes
import numpy as np

import lamina_prims
import lamina_tensor
from lamina_aot.replay import resolve
from lamina_dynamo.frontend import DataDependent, Member
from lamina_dynamo.guard import Ambient
from lamina_prims import Operator
from lamina_prims.modes import NeedsValues
from lamina_prims.promotion import get_default_dtype, set_default_dtype
from lamina_tensor import _C, Tensor, amp, autograd, fake_creation, operator_of
from lamina_tensor.creation import default_device, switch_default_device
from lamina_tensor.creator import creating_tensors
from lamina_tensor.nn.backward_hooks import run_with_backward_hooks
from lamina_tensor.optim import Optimizer
from lamina_tensor.utils import checkpoint

from .frontend_modes import FrontendModes
from .frontend_tensors import FrontendTensors, check_write
from .frontend_tracing import FrontendTracing

__all__ = ["LaminaFrontend"]

_INPLACE = [
    "iadd",
    "isub",
    "imul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ipow",
    "iand",
    "ior",
    "ixor",
    "ilshift",
    "irshift",
    "imatmul",
]
_FUNCTIONAL = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "neg",
    "pos",
    "invert",
    "abs",
    "lt",
    "le",
    "eq",
    "ne",
    "gt",
    "ge",
    "getitem",
]
_ACTIONS = {
    "backward": "autograd.backward",
    "detach": "detach",
    "requires_grad_": "requires_grad_",
    "retain_grad": "retain_grad",
    "__setitem__": "setitem",
}
_GRAD_EFFECTS = frozenset(
    (
        "autograd.backward",
        "autograd.grad",
        "autograd.function",
        "grad_get",
        "grad_set",
        "grad_hook",
        "grad_unhook",
        "retain_grad",
        "requires_grad_",
        "detach",
        "detach_",
        "data_get",
    )
)
_NEEDS_DATA = frozenset(
    ("item", "tolist", "numpy", "data_ptr", "_data_ptr", "untyped_storage", "storage_offset", "_offset", "__bool__",
     "__int__", "__float__", "__complex__", "__index__", "__array__", "__dlpack__", "__contains__", "__repr__",
     "__format__", "is_set_to", "__reduce_ex__", "__deepcopy__")
)  # fmt: skip
_NUMBERS = {"bool": bool, "int": int, "float": float}
_HOOKS = frozenset(("register_hook", "register_post_accumulate_grad_hook"))
_VALUES = frozenset(("shape", "dtype", "device", "ndim"))
_CALLED = frozenset(("creation", "functions", "indexing", "conversion", "methods", "creator"))


_CONSTANT_MAKERS = frozenset(
    (lamina_tensor.finfo, lamina_tensor.iinfo, np.finfo, np.iinfo, np.dtype, ml_dtypes.finfo, ml_dtypes.iinfo)
)
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


class LaminaFrontend(FrontendTensors, FrontendModes, FrontendTracing):
    """lamina_tensor as a front end."""

    name = "lamina"
    guards_strides = True

    def __init__(self) -> None:
        self._python: dict[Any, str] = {getattr(python_operators, n): n.rstrip("_") for n in _FUNCTIONAL}
        self._python[abs] = "abs"
        self._python[autograd.grad] = "autograd.grad"
        self._python[python_operators.setitem] = "setitem"
        for name in _INPLACE:
            id_ = operator_of(getattr(Tensor, f"__{name}__", None))
            if id_ is not None:
                self._python[getattr(python_operators, name)] = id_
        self._ambient = (
            Ambient("grad_mode", _C.is_grad_enabled),
            Ambient("inference_mode", _C.is_inference),
            Ambient("default_dtype", get_default_dtype),
            Ambient("default_device", default_device),
            Ambient("autocast", amp.autocast_state),
        )
        self._mode_functions: dict[Any, str] = {
            _C.is_grad_enabled: "get:grad_mode",
            _C.set_grad_enabled: "set:grad_mode",
            _C.is_inference: "get:inference_mode",
            _C.set_inference: "set:inference_mode",
            get_default_dtype: "get:default_dtype",
            default_device: "get:default_device",
            switch_default_device: "set:default_device",
            set_default_dtype: "set:default_dtype",
            amp.autocast_state: "get:autocast",
            amp.set_autocast_state: "set:autocast",
        }
        self._modes: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
            "grad_mode": (_C.is_grad_enabled, _C.set_grad_enabled),
            "inference_mode": (_C.is_inference, _C.set_inference),
            "default_dtype": (get_default_dtype, set_default_dtype),
            "default_device": (default_device, switch_default_device),
            "autocast": (amp.autocast_state, amp.set_autocast_state),
        }
        self._home = os.path.join(os.path.dirname(os.path.abspath(lamina_tensor.__file__)), "")
        self.folders = (self._home,)
        self._entry_grad_mode = True
        self._effects: dict[str, str | None] = {}
        self._resolved: dict[str, Callable[..., Any]] = {}

    # -- operators -------------------------------------------------------------------------------------

    def operator(self, function: object) -> str | None:
        """Operators, functions and methods made from them, in-place methods, and Python's operators."""
        if isinstance(function, Operator):
            return function.id
        if type(type(function).__hash__) is FunctionType:  # an object of the user's: its __hash__ is not ours to run
            return None
        try:
            return self._python.get(function) or operator_of(function)
        except TypeError:
            return None

    def call(self, id: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an action or in-place method on fakes."""
        if id == "set_":
            raise DataDependent("a tensor that moves to other memory")
        function = self._resolved.get(id)
        if function is None:
            function = self._resolved[id] = resolve(id)
        with fake_creation():
            if args and getattr(args[0], "_chain", None) and self.effect(id) == "write":
                check_write(args[0])
            try:
                return function(*args, **kwargs)
            except NeedsValues as error:
                raise DataDependent(str(error)) from None

    def effect(self, id: str) -> str | None:
        """The operator's own, ``"write"`` for in-place methods, ``"grad"`` for what touches autograd's state."""
        try:
            return self._effects[id]
        except KeyError:
            effect = self._effects[id] = _effect_of(id)
            return effect

    def resolve(self, id: str) -> Callable[..., Any]:
        """What runs an id on real tensors; operators without tensor arguments make tensors."""
        function = resolve(id)
        if not isinstance(function, Operator):
            return function

        def run(*args: Any, **kwargs: Any) -> Any:
            with creating_tensors():
                return function(*args, **kwargs)

        return run

    def function_rule(self, function: Any) -> tuple[str, str] | None:
        """Checkpoints become regions; the insides of autograd are not captured."""
        if function is checkpoint.checkpoint:
            return "region", "checkpoint"
        if function is autograd.Function.apply.__func__:
            return "class", "autograd.function"
        if function is run_with_backward_hooks:
            return "refuse", "a module with backward hooks"
        if function in _CONSTANT_MAKERS:
            return "constant", function.__name__
        if function is Optimizer.make_state:
            return "prepare", "make_state"
        module = getattr(function, "__module__", None) or ""
        if module.startswith("lamina_tensor.autograd.") and not module.endswith(".grad_mode"):
            return "refuse", f"{module.rpartition('.')[2]}.{function.__qualname__} of lamina's autograd"
        return None

    def prepare(self, function: Any, owner: Any, known: Callable[[Any], Any]) -> bool:
        """Make the state of parameters that the first call of ``Optimizer.make_state`` would make: compiled code then
        finds it at every call. Left to the program where it has looked at the state before.
        """
        if known(owner.state) is not None:
            return False
        missing = [
            (parameter, group)
            for group in owner.param_groups
            for parameter in group["params"]
            if not owner.state.get(parameter) and (parameter if (f := known(parameter)) is None else f).grad is not None
        ]
        made = [(parameter, owner.init_state(parameter, group)) for parameter, group in missing]
        for parameter, state in made:
            owner.state[parameter].update(state)
        return any(state for _, state in made)

    def for_frame(self, code: CodeType, local: dict[str, Any], global_: dict[str, Any]) -> Any:
        """This front end, or NumPy's for a function of NumPy's arrays that names nothing of ours."""
        if not any(type(value) is np.ndarray for value in local.values()):
            return self
        from .frontend_numpy import frontend_of  # only for functions of NumPy's arrays

        return frontend_of(code, local, global_) or self

    # -- attributes ------------------------------------------------------------------------------------

    def member(self, fake: Any, name: str) -> Member | None:
        """Sizes and flags are values; properties that are operators, methods and actions write nodes."""
        if name in _VALUES:
            return Member("value", getattr(fake, name))
        if name == "item" and fake.dtype.kind in _NUMBERS and all(n == 1 and type(n) is int for n in fake.shape):
            return Member("number", _NUMBERS[fake.dtype.kind])
        if name in _NEEDS_DATA:
            return Member("unsupported", f"Tensor.{name}() needs values that only running the graph tells")
        if name in _HOOKS:
            return Member("hook", name)
        if name in _ACTIONS:
            return Member("id", _ACTIONS[name])
        raw = _lookup(type(fake), name)
        if raw is None:
            return None
        if isinstance(raw, property):
            return self._property(fake, name, raw)
        if operator_of(raw) is not None:
            return Member("function", raw)
        if getattr(raw, "__module__", None) == "lamina_tensor.random":
            return Member("function", raw)  # reads and advances a generator's state: that must be captured
        if name.endswith("_") and not name.startswith("__"):
            return Member("id", name)
        if isinstance(raw, FunctionType):
            return Member("traced" if raw.__module__.startswith("lamina_tensor") else "function", raw)
        if callable(raw):
            return Member("function", raw)
        return Member("value", getattr(fake, name))

    def _property(self, fake: Any, name: str, raw: property) -> Member:
        if name == "data":
            return Member("operator", "data_get")
        if name == "grad_fn":
            return Member("unsupported", "Tensor.grad_fn")
        id_ = operator_of(raw)
        return Member("value", getattr(fake, name)) if id_ is None else Member("operator", id_)

    def set_member(self, fake: Any, name: str) -> str | None:
        """``x.grad = g`` and ``x.requires_grad = flag``."""
        if name == "data":
            raise DataDependent("assignment to Tensor.data")
        return {"grad": "grad_set", "requires_grad": "requires_grad_"}.get(name)

    def skip_reason(self, code: CodeType) -> str | None:
        """Frames of the eager engine are not captured; those of nn and optim are."""
        path = code.co_filename
        if path.startswith(_HERE):
            return "part of the compiler"
        if path == "<string>" and code.co_qualname.startswith("__create_fn__"):
            return "a method that dataclasses made"  # the compiler's own, when a backward half is compiled late
        if not path.startswith(self._home):
            return None
        inner = path[len(self._home) :]
        if inner.endswith("backward_hooks.py"):
            return "part of the eager engine"
        return None if inner.startswith(("nn" + os.sep, "optim" + os.sep)) else "part of the eager engine"


def _effect_of(id: str) -> str | None:
    if id in _GRAD_EFFECTS:
        return "grad"
    known = lamina_prims.operators().get(id)
    if known is not None:
        return known.effect
    return "write" if id.endswith("_") or id == "setitem" else None


def _lookup(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None
