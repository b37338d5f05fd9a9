"""Operators: objects made by ``@primitive`` and ``@composite`` that carry every fact about an operation.

Calling an operator dispatches on its arguments:

1. the innermost active mode (see ``modes``);
2. an argument whose type has ``__lamina_operator__(operator, args, kwargs)``, the highest
   ``__lamina_priority__`` first (a proxy before a tensor); arguments inside lists and tuples count;
3. a ``TensorSpec``: the result's spec is inferred, ``add(TensorSpec((2, 1), float32), TensorSpec((3,), float32))``;
4. no tensor at all (``full((2, 3), 1.0)``): the thread's creator, if there is one (see ``modes.creating``);
5. otherwise arrays of NumPy's kind: the reference runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lamina_fx import DType, ScalarSpec, Spec, TensorSpec

from .index_errors import raise_as_called
from .modes import MODES
from .schema import Schema, schema_of

__all__ = ["Operator", "find_handler"]


class Operator:
    """One operation with its facets.

    Attributes:
        id: unique name, ``"softmax"`` or with an overload ``"add.alpha"``.
        names: how front ends spell it: ``"tanh"``, ``"Tensor.tanh"``, ``"nn.functional.gelu"``, ``"Tensor.__add__"``.
        is_primitive: True for a primitive; False for a composite, whose body is its decomposition.
        effect: None when pure, otherwise the word that ``Node.effect`` gets.
        alias: True when the result is a view of the first argument; a function of the arguments (specs) where it
            depends on them, see ``views``.
        elementwise: the promotion rule of an elementwise operator, otherwise None.
        in_place: may a front end derive the in-place form (``add_``) from it.
        result_names: names of several results (``("values", "indices")``).
        variadic: the parameter that may also be given as separate arguments, as ``size`` in ``view(x, 2, 3)``.
        samples, errors: generators of calls for the generic tests.
    """

    def __init__(
        self,
        id: str,
        function: Callable[..., Any],
        *,
        primitive: bool,
        names: tuple[str, ...] = (),
        meta: Callable[..., Spec] | None = None,
        reference: Callable[..., Any] | None = None,
        samples: Callable[..., Iterable[Any]] | None = None,
        errors: Callable[..., Iterable[Any]] | Iterable[Any] = (),
        effect: str | None = None,
        alias: bool | Callable[..., bool] = False,
        elementwise: Any = None,
        cost: int = 1,
        tags: frozenset[str] = frozenset(),
        in_place: bool | None = None,
        result_names: tuple[str, ...] = (),
        variadic: str | None = None,
    ) -> None:
        self.id = id
        self.function = function
        self.is_primitive = primitive
        self.names = names
        self.meta = meta
        self.reference = reference
        self.samples = samples
        self.errors = errors
        self.effect = effect
        self.alias = alias
        self.elementwise = elementwise
        self.cost = cost
        self.tags = tags
        self.in_place = elementwise is not None if in_place is None else in_place
        self.result_names = result_names
        self.variadic = variadic
        self.vjp_rule: Callable[..., Any] | None = None
        self.vjp_saves: tuple[str, ...] = ()
        self.normalize_rule: Callable[..., Any] | None = None
        self.scatter_rule: Callable[..., Any] | None = None
        self.jvp_rule: Callable[..., Any] | None = None  # reserved: forward derivative
        self.batch_rule: Callable[..., Any] | None = None  # reserved: vmap
        self.kernel: Callable[..., Any] | None = None
        self.__name__ = id
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        """Parameters and results."""
        if self._schema is None:
            self._schema = schema_of(self.id, self.function)
        return self._schema

    # -- facets that are declared after the operator itself -----------------------------------------

    def vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the vector-Jacobian product.

        The rule's parameter names say what must be saved: ``ct`` (cotangent of the result; a tuple for several
        results, None where there is none), ``out`` (the result), ``needs`` (a tuple of bools, one per
        tensor parameter: is its gradient wanted), any of the operator's own parameters, and ``<name>_spec``: only the
        spec of the tensor parameter ``<name>``, whose values need not be kept. It returns one
        gradient per tensor parameter, in order (a list for a list of tensors; None: no gradient).
        Reducing a gradient to the argument's shape (unbroadcasting) and dtype is done by the caller.
        """
        self.vjp_rule = rule
        self.vjp_saves = rule.__code__.co_varnames[: rule.__code__.co_argcount]
        return rule

    def normalize(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare how a call is rewritten to the strict form that backends get (primitives only).

        The rule has the operator's parameters and is written with other operators. It returns
        ``NotImplemented`` when the call is strict already.
        """
        self.normalize_rule = rule
        return rule

    def scatter(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare, for a view operator, how writing to the view changes what it views.

        ``rule(base, value, *rest)``, with the operator's other arguments as ``rest``, returns ``base`` with the
        elements that the view shows replaced by ``value``.
        """
        self.scatter_rule = rule
        return rule

    # -- use -----------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do the call: see the module's documentation for who does it."""
        if kwargs and ("axis" in kwargs or "keepdims" in kwargs):
            kwargs = self.schema.spelled(kwargs)
        if self.variadic is not None:
            args = self.schema.gather(args, self.variadic)
        if MODES.stack:
            return MODES.handle(self, args, kwargs)
        handler = find_handler(args, kwargs)
        if handler is not None:
            return handler(self, args, kwargs)
        if MODES.creator is not None and not _has_array(args, kwargs):
            return MODES.creator(self, args, kwargs)
        return self.run_arrays(args, kwargs)

    def infer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec:
        """Spec of the result from the specs of the arguments. Raises the error a user should see."""
        if self.variadic is not None:
            args = self.schema.gather(args, self.variadic)
        if self.meta is not None:
            if kwargs and self.elementwise is not None:
                return self.meta(*self.schema.bind(args, kwargs))
            try:
                return self.meta(*args, **kwargs)
            except TypeError:
                self.check_arguments(args, kwargs)
                raise
        from .infer import infer_composite  # a composite's body runs on specs; would be a cycle above

        return infer_composite(self, args, kwargs)

    def check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Say in the operator's own words what is wrong with the number and the names of the arguments, if anything.

        Raises:
            TypeError: too many, missing, repeated or unknown arguments; the message shows the schema.
        """
        try:
            self.schema.bind(args, kwargs)
        except TypeError as error:
            raise error from None  # what was raised before names a function that users never see

    def run_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute on arrays of NumPy's kind: the reference, or the body of a composite without one.

        ``kernel``, where a front end has set one, is asked first; it returns ``NotImplemented`` to decline.
        """
        if self.kernel is not None and (result := self.kernel(*args, **kwargs)) is not NotImplemented:
            return result
        if self.reference is not None:
            if kwargs and self.elementwise is not None:
                return self.reference(*self.schema.bind(args, kwargs))
            return self.reference(*args, **kwargs)
        if self.is_primitive:
            raise NotImplementedError(f"{self.id} has no reference")
        saved, MODES.creator = MODES.creator, None
        try:
            return self.function(*args, **kwargs)
        except (IndexError, RuntimeError) as problem:
            raise_as_called(problem, self.id)
            raise
        finally:
            MODES.creator = saved

    def views(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Is the result of this call (given as specs) a view of the first argument."""
        return self.alias(*args, **kwargs) if callable(self.alias) else self.alias

    def __repr__(self) -> str:
        return f"<{'primitive' if self.is_primitive else 'composite'} {self.id}>"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        from .registry import operator

        return operator, (self.id,)


def find_handler(args: Iterable[Any], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """What does a call with these arguments.

    The ``__lamina_operator__`` of the argument with the highest priority; inference when there are specs only;
    otherwise None.
    """
    best: Any = None
    priority = -1
    spec = False
    stack = [args, kwargs.values()] if kwargs else [args]
    while stack:
        for value in stack.pop():
            kind = type(value)
            level = _LEVELS.get(kind)
            if level is None:
                level = _level(kind)
            if level > priority:
                best, priority = value, level
            elif level == _SEQUENCE:
                stack.append(value)
            elif level == _SPEC:
                spec = True
    if best is not None:
        return best.__lamina_operator__
    return Operator.infer if spec else None


_NONE, _SEQUENCE, _SPEC = -1, -2, -3
_LEVELS: dict[type, int] = {
    **dict.fromkeys((int, float, bool, complex, str, type(None), DType), _NONE),
    **dict.fromkeys((list, tuple), _SEQUENCE),
    **dict.fromkeys((TensorSpec, ScalarSpec), _SPEC),
}
"""What a type of argument means: the priority of its handler, or one of the above."""


def _level(kind: type) -> int:
    if not hasattr(kind, "__lamina_operator__"):
        return _NONE  # not remembered: the table would keep classes of programs alive
    level = _LEVELS[kind] = getattr(kind, "__lamina_priority__", 0)
    return level


def _has_array(args: Iterable[Any], kwargs: dict[str, Any]) -> bool:
    """Is there anything with a dtype and a shape among the arguments."""
    for value in (*args, *kwargs.values()):
        if type(value) in (list, tuple):
            if _has_array(value, {}):
                return True
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            return True
    return False
