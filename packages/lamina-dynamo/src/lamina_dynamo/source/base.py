"""What all sources share: the path, read step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CellType
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ..emit import Emitter

__all__ = [
    "FrameScope",
    "Source",
    "Step",
    "base_of",
    "chain",
]


@dataclass(frozen=True, slots=True)
class FrameScope:
    """What a frame can see while it is compiled. `closure` maps free variable names to their cells."""

    locals: Mapping[str, object]
    globals: Mapping[str, object]
    builtins: Mapping[str, object]
    closure: Mapping[str, CellType] = field(default_factory=dict)


class Source:
    """One way to reach a value. Subclasses are the steps; `base_of(source)` is the source a step starts from."""

    __slots__ = ("_hash",)
    opcode: ClassVar[str] = ""
    """Name of the step in a guard program."""
    _hash: int

    def __init_subclass__(cls) -> None:
        """Paths are long and looked up often: their hash is worked out once."""
        compute = cls.__dict__.get("__hash__")
        if compute is None or hasattr(compute, "computes"):
            return

        def cached(self: Source) -> int:
            try:
                return self._hash
            except AttributeError:
                value = compute(self)
                object.__setattr__(self, "_hash", value)
                return value

        cached.computes = compute  # type: ignore[attr-defined]
        cls.__hash__ = cached  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        """The path as text, for messages: ``L['self'].layers[0]``."""
        raise NotImplementedError

    def step(self) -> tuple[str, object]:
        """The step as an instruction of a guard program: its name and its operand."""
        return self.opcode, None

    def fetch(self, scope: FrameScope) -> object:
        """Read the value now. Raises what reading it raises."""
        raise NotImplementedError

    def emit(self, emitter: Emitter) -> None:
        """Write code that pushes the value."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name


class Step(Source):
    """A source with a base: text, fetch and code are the base's and then one step more."""

    __slots__ = ()
    base: Source

    @property
    def name(self) -> str:
        """The base's path and this step."""
        return self.base.name + self.suffix()

    def suffix(self) -> str:
        """The step as text, appended to the base's."""
        raise NotImplementedError

    def fetch(self, scope: FrameScope) -> object:
        """Read the base now, then make the step."""
        return self.read(self.base.fetch(scope))

    def read(self, value: object) -> object:
        """Make the step from this value of the base."""
        raise NotImplementedError


def base_of(source: Source) -> Source | None:
    """The source this one starts from, None for the first of a path."""
    return source.base if isinstance(source, Step) else None


def chain(source: Source) -> Iterator[Source]:
    """The source and its bases, first step first."""
    path: list[Source] = []
    at: Source | None = source
    while at is not None:
        path.append(at)
        at = base_of(at)
    return reversed(path)
