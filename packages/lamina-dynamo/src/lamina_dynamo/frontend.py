"""What capture asks of an array library: the ``Frontend`` protocol.

A front end says which values are arrays, gives a *fake* for each (shape, dtype and behaviour without data),
names the operator behind a callable, and runs operators on fakes. Capture knows nothing else of the library, so
the same interpreter serves any. ``numpy_frontend`` implements it for plain NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lamina_fx import TensorSpec
from lamina_fx.symbolic import ShapeEnv

from .guard import Ambient, Guard
from .source import Source

__all__ = ["DataDependent", "Frontend", "Member", "SizePolicy"]

SizePolicy = Callable[[int, int], Any]
"""``policy(dim, size)``: what stands for a size in a fake, an int or a ``SymInt``."""


class DataDependent(Exception):
    """Raised by ``Frontend.call``: the result depends on the values of arrays, which a fake does not have."""


@dataclass(frozen=True, slots=True)
class Member:
    """An attribute of an array.

    ``kind`` says how to read it: ``"value"`` (``value`` is the attribute: sizes, dtype, flags, another fake, or
    None), ``"operator"`` (``value`` is the id of an operator of the array alone), ``"function"`` (``value`` is
    a callable to bind to the array), ``"number"`` (``item`` of one element: ``value`` is the type of the number),
    ``"hook"`` (a method that registers a hook on a gradient), ``"unsupported"`` (``value`` says why).
    """

    kind: str
    value: Any


class Frontend(Protocol):
    """An array library, as capture sees it."""

    name: str

    def is_array(self, value: object) -> bool:
        """Whether this is an array that becomes an input of the graph."""

    def is_constant(self, value: object) -> bool:
        """Whether this is an immutable value of the library with no array in it, guarded by identity: a dtype, a
        device.
        """

    def fake(self, value: Any, shape_env: ShapeEnv, policy: SizePolicy) -> Any:
        """A fake for an array of the caller. Fakes of views of one memory need not know of each other."""

    def array_type(self, fake: Any) -> type:
        """What ``type()`` gives for the array."""

    def spec(self, fake: Any) -> TensorSpec:
        """Shape, dtype, strides and device."""

    def is_fake(self, value: object) -> bool:
        """Whether this is a fake of this front end."""

    def operator(self, function: object) -> str | None:
        """The id of the operator that calling ``function`` means; None when it is no operator.

        ``function`` may be one of Python's ``operator`` module: ``operator.add`` is ``+``, ``operator.iadd`` is ``+=``,
        ``operator.getitem``, ``operator.setitem``.
        """

    def call(self, id: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator on fakes: fakes, plain values, None, or tuples and lists of them.

        Raises:
            DataDependent: the result cannot be known without the data.
            Exception: any error that the call raises in eager; the traced program sees it.
        """

    def effect(self, id: str) -> str | None:
        """The word for ``Node.effect``; ``"write"`` for an in-place operator."""

    def member(self, fake: Any, name: str) -> Member | None:
        """An attribute; None when arrays have none of that name."""

    # Optional: ``folders: tuple[str, ...]``: where the library's own code lies; messages name the line that called it.
    # Optional: ``backward_guards(value, source, fake) -> list[Guard] | str``: the guards under which a backward pass
    # inside the graph does all that it does in eager to this input; or why it does not, such as "has hooks".

    # Optional: ``for_frame(code, locals, globals) -> Frontend``: the front end for this frame of a function that was
    # given to `optimize`: a library may leave functions of another library's arrays to that one's front end.

    # Optional: ``memory_guards(id, args, kwargs, inputs) -> list[Guard]``: the guards under which an operator called on
    # fakes, of which ``inputs`` (value, source, fake) are the graph's inputs, means the same; raises DataDependent.

    # Optional: ``keeps_sizes(value, source, scope) -> bool``: whether an array's sizes stay numbers under
    # ``dynamic=True`` as long as one size is seen, because it belongs to a model or an optimizer.

    def set_member(self, fake: Any, name: str) -> str | None:
        """The id of the operator that assigning to this attribute means; None for an ordinary attribute."""

    def truth(self, fake: Any) -> bool | None:
        """``bool(array)`` where it does not depend on the data."""

    def guards(self, value: Any, source: Source, fake: Any) -> list[Guard]:
        """What must hold of an array input; symbolic sizes of the fake are left open."""

    def function_rule(self, function: object) -> tuple[str, str] | None:
        """What is special about a function or class: ``("refuse", why)`` ends the graph at its call; ``("region",
        word)`` means ``f(function, *args)`` with the nodes of ``function`` in a region ``word:n``; ``("constant",
        word)``: the result depends on the arguments only and never changes; ``("class", id)``: a custom function;
        ``("prepare", word)``: `prepare` is asked first; None: it is captured like any other."""

    def ambient(self) -> Sequence[Ambient]:
        """State that operators depend on, such as the grad mode; guarded as it is when the frame is entered."""

    def mode_function(self, function: object) -> str | None:
        """``"get:NAME"`` or ``"set:NAME"`` when the callable reads or sets ambient state."""

    def get_mode(self, name: str) -> Any:
        """The ambient state now."""

    def set_mode(self, name: str, value: Any) -> None:
        """Change the ambient state now; the emitted code calls it too."""

    def regions(self) -> tuple[str, ...]:
        """The region tags of a node made now, such as ``("no_grad",)``."""

    def resolve(self, id: str) -> Callable[..., Any]:
        """What runs an operator id on real arrays."""
