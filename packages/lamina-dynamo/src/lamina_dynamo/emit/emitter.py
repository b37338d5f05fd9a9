"""The Emitter: writes the code object that runs instead of a frame's own.

The new code has the frame's arguments and free variables, so it can be put into the frame that has not started yet.
A user of this class (the translator) writes, in order:

1. a call of the compiled graph: ``emitter.call_graph(graph, lambda: [emitter.load_source(s) for s in inputs],
   len(inputs))``, which pushes the tuple of outputs; keep it with ``outputs = emitter.new_temp();
   emitter.store_temp(outputs)``;
2. side effects, by loads and stores;
3. an end, one of
   - ``return_value()`` with the result on the stack;
   - a graph break: rebuild the frame as the broken instruction expects it (value stack bottom to top, NULLs by
     `push_null`; bound plain locals by `store_local`, cells by `store_deref`), then ``resume.run_natively(emitter,
     offset, stack, bound)``;
   - a graph break in an inlined callee: see `lamina_dynamo.resume`;
4. ``finish() -> CodeType``.

Methods push and pop as their docstrings say (``before -- after``, top at the right). Locals and temporaries are
slots of the new frame: `load_local` only of names that are bound (an unbound slot crashes the interpreter).
Temporaries are freed before an end.

>>> def f(x, y): return x - y
>>> emitter = Emitter(f.__code__)
>>> emitter.prepare_call(lambda: emitter.load_const(max))
>>> emitter.load_argument("x"); emitter.load_argument("y")
>>> emitter.call(2)
>>> emitter.return_value()
>>> f.__code__ = emitter.finish()
>>> f(3, 4)
4
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType

from bytecode import BinaryOp, CellVar, FreeVar, Instr, Label, SetLineno, TryBegin, TryEnd

from .. import _core
from ..source import Source
from .assemble import Constant, assemble, cell_variable, entry_sequence
from .dialect import dialect

__all__ = ["Emitter"]

Item = Instr | Label | TryBegin | TryEnd | SetLineno


class Emitter:
    """Writes one replacement code object; see the module's page for the order of use.

    Args:
        code: the frame's own code: arguments, cells, free variables, names for tracebacks.
    """

    __slots__ = ("_depth", "_ended", "_first", "_items", "_line", "_lost", "_maximum", "_temps", "code")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self._items: list[Item] = []
        self._depth = 0
        self._maximum = 0
        self._line = code.co_firstlineno
        self._temps: list[str] = []
        self._first: list[str] = []
        self._lost: set[str] = set()
        self._ended = False

    # ---- the machinery -----------------------------------------------------------------------------------------

    def emit(self, name: str, argument: object = None, effect: int = 0) -> None:
        """Append one instruction; `effect` is its net effect on the stack depth. For what has no method here."""
        instruction = Instr(name, lineno=self._line) if argument is None else Instr(name, argument, lineno=self._line)
        self._items.append(instruction)
        self._move(effect)

    def place(self, item: Item) -> None:
        """Append a label, the begin or end of a protected range, or an instruction that has its own location."""
        self._items.append(item)

    def set_depth(self, depth: int) -> None:
        """Say how deep the stack is at a label that is reached by jumps only."""
        self._depth = depth
        self._maximum = max(self._maximum, depth)

    def append(self, instructions: Sequence[Instr], effect: int) -> None:
        """Append instructions at the current line with this effect in all."""
        for instruction in instructions:
            instruction.lineno = self._line
            self._items.append(instruction)
        self._move(effect)

    def _move(self, effect: int) -> None:
        self._depth += effect
        self._maximum = max(self._maximum, self._depth)
        if self._depth < 0:
            raise ValueError("the emitted code pops from an empty stack")

    @property
    def depth(self) -> int:
        """Values and NULLs on the stack now."""
        return self._depth

    def set_line(self, line: int) -> None:
        """The user's line of what is written next; tracebacks show it."""
        self._line = line

    def new_temp(self) -> str:
        """A fresh variable of the emitted code, not bound yet."""
        name = f".lamina{len(self._temps)}"
        self._temps.append(name)
        return name

    def inputs_variable(self) -> str:
        """The variable in the slot behind the arguments, bound from the start: who starts the frame fills it."""
        self._first = [".inputs"]
        return self._first[0]

    # ---- loads: ( -- value) ------------------------------------------------------------------------------------

    def load_const(self, value: object) -> None:
        """Push a constant: any object; it lives as long as the code."""
        self._items.append(Instr("LOAD_CONST", Constant.wrap(value), lineno=self._line))
        self._move(1)

    def load_source(self, source: Source) -> None:
        """Push what the source reads."""
        source.emit(self)

    def load_argument(self, name: str) -> None:
        """Push an argument of the frame as it was at entry; an error when `store_local` has overwritten it."""
        if name in self._lost:
            raise ValueError(
                f"argument {name!r} is loaded after it was overwritten: load sources before restoring locals"
            )
        self.load_variable(name)

    def load_variable(self, name: str) -> None:
        """Push a bound variable of the frame, whether it is a plain local, a cell or free."""
        variable = cell_variable(self.code, name)
        if variable is None:
            self.emit("LOAD_FAST", name, 1)
        else:
            self.emit("LOAD_DEREF", variable, 1)

    def load_local(self, name: str) -> None:
        """Push a bound plain local."""
        self.emit("LOAD_FAST", name, 1)

    load_temp = load_local

    def load_global(self, name: str) -> None:
        """Push a global, or a builtin where the globals lack it."""
        self.append([dialect.load_global(name)], 1)

    def load_deref(self, name: str) -> None:
        """Push the value in a cell of this frame or a free variable."""
        self.emit("LOAD_DEREF", self._cell(name), 1)

    def load_cell(self, name: str) -> None:
        """Push a cell of this frame or a free variable's cell: the cell itself."""
        self.append([dialect.load_cell(self._cell(name))], 1)

    def _cell(self, name: str) -> CellVar | FreeVar:
        variable = cell_variable(self.code, name)
        if variable is None:
            raise ValueError(f"{name!r} is not a cell or free variable of {self.code.co_qualname}")
        return variable

    def push_null(self) -> None:
        """Push an empty slot."""
        self.emit("PUSH_NULL", None, 1)

    # ---- stores ------------------------------------------------------------------------------------------------

    def store_local(self, name: str) -> None:
        """(value -- ) into a plain local."""
        self._lost.add(name)
        self.emit("STORE_FAST", name, -1)

    def store_temp(self, name: str) -> None:
        """(value -- ) into a temporary."""
        self.emit("STORE_FAST", name, -1)

    def delete_local(self, name: str) -> None:
        """Unbind a bound plain local; also frees its value early."""
        self._lost.add(name)
        self.emit("DELETE_FAST", name)

    def clear_local(self, name: str) -> None:
        """Unbind a plain local, bound or not."""
        self._lost.add(name)
        self.emit("PUSH_NULL", None, 1)
        self.emit("STORE_FAST", name, -1)

    def store_deref(self, name: str) -> None:
        """(value -- ) into the cell of a cell or free variable."""
        self._lost.add(name)
        self.emit("STORE_DEREF", self._cell(name), -1)

    def delete_deref(self, name: str) -> None:
        """Empty a filled cell."""
        self._lost.add(name)
        self.emit("DELETE_DEREF", self._cell(name))

    def store_global(self, name: str) -> None:
        """(value -- ) into the frame's globals."""
        self.emit("STORE_GLOBAL", name, -1)

    def delete_global(self, name: str) -> None:
        """Remove a name from the frame's globals."""
        self.emit("DELETE_GLOBAL", name)

    # ---- attributes and items ----------------------------------------------------------------------------------

    def load_attr(self, name: str) -> None:
        """(object -- value) by `getattr`."""
        self.append([dialect.load_attr(name)], 0)

    def store_attr(self, name: str) -> None:
        """(value object -- ) by `setattr`. Raw stores: call `object.__setattr__` as a constant."""
        self.emit("STORE_ATTR", name, -2)

    def delete_attr(self, name: str) -> None:
        """(object -- ) by `delattr`."""
        self.emit("DELETE_ATTR", name, -1)

    def load_item(self) -> None:
        """(container key -- value)."""
        self.append([dialect.subscript()], -1)

    def store_item(self) -> None:
        """(value container key -- )."""
        self.emit("STORE_SUBSCR", None, -3)

    def delete_item(self) -> None:
        """(container key -- )."""
        self.emit("DELETE_SUBSCR", None, -2)

    # ---- values from values ------------------------------------------------------------------------------------

    def build_tuple(self, count: int) -> None:
        """(v1 .. vn -- tuple)."""
        if count:
            self.emit("BUILD_TUPLE", count, 1 - count)
        else:  # immortal, and from 3.14 on BUILD_TUPLE counts its references as those of an ordinary object
            self.load_const(())

    def add(self) -> None:
        """(a b -- a + b)."""
        self.emit("BINARY_OP", BinaryOp.ADD, -1)

    def build_list(self, count: int) -> None:
        """(v1 .. vn -- list)."""
        self.emit("BUILD_LIST", count, 1 - count)

    def build_set(self, count: int) -> None:
        """(v1 .. vn -- set)."""
        self.emit("BUILD_SET", count, 1 - count)

    def build_map(self, count: int) -> None:
        """(k1 v1 .. kn vn -- dict)."""
        self.emit("BUILD_MAP", count, 1 - 2 * count)

    def build_slice(self, count: int) -> None:
        """(start stop [step] -- slice), count 2 or 3."""
        self.emit("BUILD_SLICE", count, 1 - count)

    def build_string(self, count: int) -> None:
        """(s1 .. sn -- str) joined."""
        self.emit("BUILD_STRING", count, 1 - count)

    def unpack(self, count: int) -> None:
        """(sequence -- vn .. v1): the first item comes on top."""
        self.emit("UNPACK_SEQUENCE", count, count - 1)

    def copy(self, position: int = 1) -> None:
        """Push again the value at this position from the top (1 is the top)."""
        self.emit("COPY", position, 1)

    def swap(self, position: int = 2) -> None:
        """Exchange the top with the value at this position from the top."""
        self.emit("SWAP", position)

    def pop(self) -> None:
        """(value -- )."""
        self.emit("POP_TOP", None, -1)

    def make_function(self, code: CodeType, flags: int = 0) -> None:
        """([defaults] [kwdefaults] [annotations] [closure] -- function) with this frame's globals.

        Flags 1, 2, 4, 8 say which.
        """
        self.load_const(code)
        self.append(dialect.make_function(flags), -bin(flags).count("1"))

    def make_cell(self) -> None:
        """(value -- cell): a new cell. An empty cell: ``call_runtime("new_cell", lambda: None, 0)``."""
        value = self.new_temp()
        self.store_temp(value)
        self.call_runtime("new_cell", lambda: self.load_temp(value), 1)

    def push_exc_info(self) -> None:
        """(exception -- previous exception): as at the head of a handler: `exception` becomes the one being handled."""
        self.emit("PUSH_EXC_INFO", None, 1)

    def pop_except(self) -> None:
        """(previous -- ): end of a handler."""
        self.emit("POP_EXCEPT", None, -1)

    # ---- calls -------------------------------------------------------------------------------------------------

    def prepare_call(self, load_callable: Callable[[], object]) -> None:
        """( -- callable and NULL in this version's order). Then push the arguments and `call`."""
        if dialect.NULL_AFTER_CALLABLE:
            load_callable()
            self.push_null()
        else:
            self.push_null()
            load_callable()

    def call(self, arguments: int, keywords: Sequence[str] = ()) -> None:
        """(callable+NULL v1 .. vn -- result); the last of the values go by these keywords."""
        if keywords:
            self._move(1)
            self._move(-1)
        self.append(dialect.call(arguments, keywords), -1 - arguments)

    def call_ex(self, has_keywords: bool = False) -> None:
        """(callable+NULL tuple [dict] -- result)."""
        self._move(1)
        self._move(-1)
        self.append(dialect.call_ex(has_keywords), -2 - has_keywords)

    def call_function(self, function: object, load_arguments: Callable[[], object], arguments: int) -> None:
        """( -- result) of a call of this object."""
        self.prepare_call(lambda: self.load_const(function))
        load_arguments()
        self.call(arguments)

    def call_runtime(self, name: str, load_arguments: Callable[[], object], arguments: int) -> None:
        """( -- result) of a call of a function of `lamina_dynamo._core`.

        Such as type_lookup, dict_keys, tensor_property or new_cell.
        """
        self.call_function(getattr(_core, name), load_arguments, arguments)

    def call_graph(self, graph: Constant, load_inputs: Callable[[], object], inputs: int) -> None:
        """( -- outputs) of the compiled graph, which may become known later; no frame below it is captured."""
        self.call_function(graph, load_inputs, inputs)

    # ---- ends --------------------------------------------------------------------------------------------------

    def release_temps(self) -> None:
        """Free what the temporaries hold; also hides them from `locals()`."""
        for name in self._temps:
            self.emit("PUSH_NULL", None, 1)
            self.emit("STORE_FAST", name, -1)

    def return_value(self) -> None:
        """(value -- ) and the frame ends."""
        self.emit("RETURN_VALUE", None, -1)
        self._ended = True

    def raise_value(self) -> None:
        """(exception -- ) raised here, outside any protected range of the user's code."""
        self.emit("RAISE_VARARGS", 1, -1)
        self._ended = True

    def end(self) -> None:
        """Say that the code written last leaves the frame (for those who write an end with `emit`)."""
        self._ended = True

    def finish(self) -> CodeType:
        """The code object."""
        if not self._ended:
            raise ValueError(
                "the emitted code has no end: return_value, raise_value, resume.run_natively or continue_with_call"
            )
        items = [*entry_sequence(self.code), *self._items]
        return assemble(self.code, items, self._maximum, first=self._first)
