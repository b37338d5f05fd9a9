"""Program IR: a whole graph as buffers and steps; what a host-program generator prints.

Buffers are named. Their memory is an argument (``input``), a result (``output``), a slice of the one workspace
(``workspace``), or
a constant of the program (``constant``). Steps run in order.

    Program sin_sum
      arg0: float32[1024, 64] input 0
      out0: float32[] output 0
      ws0: float32[16] workspace @ 0
      launch k0_sin_sum(arg0, ws0, out0)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from lamina_fx import Device, DType

from .kernel import Kernel

if TYPE_CHECKING:
    from lamina_fx.symbolic import Expr, Symbol

__all__ = [
    "Attention",
    "AttentionBackward",
    "Buffer",
    "Check",
    "Convolution",
    "CopyBuffer",
    "Gemm",
    "HostCall",
    "INDEX_BITS",
    "KernelCall",
    "Launch",
    "Operand",
    "Program",
    "Result",
    "SizeSource",
    "Step",
]


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of a tensor. ``shape`` and ``strides`` are in elements (``int`` or ``Expr``).

    ``storage``: ``"input"`` (``index``: which input of the artifact), ``"output"`` (``index``: which allocation, see
    ``Program.outputs``),
    ``"workspace"`` (``offset`` in bytes, a multiple of 64), ``"constant"`` (``index`` into ``Program.constants``).
    """

    name: str
    dtype: DType
    shape: tuple[Expr | int, ...]
    strides: tuple[Expr | int, ...]
    storage: str
    index: int = 0
    offset: Expr | int = 0


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel with its arguments: buffer names for ``kernel.params``, expressions for ``kernel.sizes``."""

    kernel: Kernel
    buffers: tuple[str, ...]
    sizes: tuple[Expr | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """Kernel calls that are independent of each other, run in one parallel region.

    Phase 0 of all parts is one pool of iterations to divide among the threads, then a barrier, then phase 1, ...
    Parts that call the same kernel stand next to
    each other: print them as a loop over a table of pointers and sizes.
    """

    parts: tuple[KernelCall, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """A strided view of a buffer: element offset, sizes and strides."""

    buffer: str
    dtype: DType
    offset: Expr | int
    shape: tuple[Expr | int, ...]
    strides: tuple[Expr | int, ...]


@dataclass(frozen=True, slots=True)
class Gemm:
    """``out[b, m, n] = sum_k left[b, m, k] * right[b, k, n]`` (plus ``out`` when ``accumulate``).

    All three operands have three dimensions, or all four (two of batch), any strides (0 for a batch that is
    broadcast). Accumulates in float32
    for the half types, in the dtype otherwise.
    ``epilogue``: a call whose kernel has one phase over the rows ``b * M + m``: run it on a block of rows as soon as
    that block of ``out`` is complete,
    while it is in cache. ``scratch``: ``out`` is read by nothing but the epilogue, so a block-sized buffer per
    thread would do (then the
    host may not keep ``out`` whole).
    """

    left: Operand
    right: Operand
    out: Operand
    accumulate: bool = False
    epilogue: KernelCall | None = None
    scratch: bool = False


@dataclass(frozen=True, slots=True)
class Convolution:
    """Convolution of ``input[n, ci, *spatial]`` with ``weight[co, ci / groups, *window]``; transposed or not.

    ``epilogue``: as in ``Gemm``, one phase over ``n * co`` (rows are the flattened ``out`` positions). ``scratch``:
    nothing else reads ``out``.
    """

    input: Operand
    weight: Operand
    bias: Operand | None
    out: Operand
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int
    transposed: bool = False
    output_padding: tuple[int, ...] = ()
    input_dilation: tuple[int, ...] = ()
    epilogue: KernelCall | None = None
    scratch: bool = False


@dataclass(frozen=True, slots=True)
class Attention:
    """``out[l, :] = sum_s p[l, s] * value[s, :]`` with ``p[l, s] = softmax_s(scale * query[l, :] . key[s, :])``.

    All operands but ``state`` have five dimensions: batch, heads, group, then (L, E) of ``query``, (S, E) of ``key``,
    (S, Ev) of ``value``, (L, Ev) of ``out``, (L, 1) of ``lse``, (L, S) of ``mask``. The first three have ``out``'s
    sizes; stride 0 where an operand is broadcast (grouped queries share keys). The last strides are 1, but
    for those of the program's own inputs, which may be any. float32, float64 or a half type; products and sums in
    float32 for the half types.

    mask: bool (false: takes no part), or of ``lse``'s dtype (added to the scores). causal: key s takes part for query
    l where s <= l. dropout: probabilities p are kept where element ``((b * H + h) * G + g) * L * S + l * S + s`` of
    ``dropout_mask(state, ...)`` is true, and divided by ``1 - dropout``; ``state``: int64[2], None without dropout.
    lse: log of the sum of exp(scores), None where nothing reads it. A row that a mask leaves without any key is 0,
    its lse -inf.
    """

    query: Operand
    key: Operand
    value: Operand
    mask: Operand | None
    out: Operand
    lse: Operand | None
    causal: bool
    scale: float
    dropout: float = 0.0
    state: Operand | None = None

    @property
    def operands(self) -> tuple[Operand, ...]:
        """All that there are."""
        return _present(self.query, self.key, self.value, self.mask, self.out, self.lse, self.state)


@dataclass(frozen=True, slots=True)
class AttentionBackward:
    """Gradients of ``Attention``, whose fields mean the same here; ``out`` and ``lse`` are read.

    ``grad_out`` is like ``out``, ``grad_lse`` (or None) like ``lse``. ``grad_query``, ``grad_key`` and ``grad_value``
    are written, None where not wanted; their first three sizes are 1 where the operand was broadcast: the sum over
    that dimension is stored.
    """

    grad_out: Operand
    grad_lse: Operand | None
    out: Operand
    lse: Operand
    query: Operand
    key: Operand
    value: Operand
    mask: Operand | None
    grad_query: Operand | None
    grad_key: Operand | None
    grad_value: Operand | None
    causal: bool
    scale: float
    dropout: float = 0.0
    state: Operand | None = None

    @property
    def operands(self) -> tuple[Operand, ...]:
        """All that there are."""
        read = self.grad_out, self.grad_lse, self.out, self.lse, self.query, self.key, self.value, self.mask
        return _present(*read, self.grad_query, self.grad_key, self.grad_value, self.state)


def _present(*operands: Operand | None) -> tuple[Operand, ...]:
    return tuple([o for o in operands if o is not None])


@dataclass(frozen=True, slots=True)
class HostCall:
    """Run an operator's reference on views of the buffers (no kernel exists for it) and copy the results into ``outs``.

    ``args``/``kwargs`` are the node's arguments with ``Operand`` where a tensor stands and ``Expr`` where a symbolic
    size stands.
    """

    operator: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    outs: tuple[Operand | None, ...]
    source: str = ""


@dataclass(frozen=True, slots=True)
class CopyBuffer:
    """``target[...] = source`` elementwise, same shape and dtype, any strides."""

    source: Operand
    target: Operand


Step = Union[Launch, Gemm, Convolution, Attention, AttentionBackward, HostCall, CopyBuffer]
"""A step of a program."""


@dataclass(frozen=True, slots=True)
class SizeSource:
    """Where a size symbol's value comes from: input number ``input`` itself (an int; ``dim`` is None) or its size at
    ``dim``. ``hint``: what it was when the graph was captured, None when that is not known."""

    symbol: Symbol
    input: int
    dim: int | None = None
    hint: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One output of the artifact.

    ``kind``: ``"buffer"`` (``value``: name of the ``output`` buffer to allocate and return), ``"input"`` (``value``:
    the number of the input that is returned
    itself), ``"scalar"`` (``value``: an int, float, ... or an ``Expr`` of sizes), ``"alias"`` (same tensor as output
    number ``value``).
    """

    kind: str
    value: Any


INDEX_BITS = 48
"""Of an error word, for the index that was out of range; the number of the check stands above them."""


@dataclass(frozen=True, slots=True)
class Check:
    """What error word ``number`` means: an index outside of ``size``. ``error`` is the exception's name.

    ``template`` is its message (with the user's line), in which ``{index}`` and ``{size}`` stand for what is known
    then.
    """

    number: int
    error: str
    template: str
    size: Expr | int

    @property
    def message(self) -> str:
        """Without the index."""
        return check_text(self.template, None, self.size)


def check_text(template: str, index: str | None, size: object) -> str:
    """The message of a check. ``index``: as text; None: not known."""
    named = "an index" if index is None else f"index {index}"
    return template.replace("{index}", named).replace("{size}", str(size))


@dataclass(frozen=True)
class Program:
    """A compiled graph before printing.

    Attributes:
        name: of the graph.
        inputs: per placeholder: a ``Buffer`` with storage ``input``, or None for one that is not a tensor (its value
        is a size or unused).
        buffers: all buffers, by name.
        constants: NumPy arrays of ``constant`` buffers.
        sizes: how size symbols get their values.
        steps: what runs.
        outputs: what is returned, in order.
        workspace: bytes (an ``int`` or ``Expr`` of sizes).
        checks: error words.
        writes: numbers of the inputs that are written (write-backs).
        device: where everything lives.
        narrow: sizes without a bound are so small that 31 bits do for indices; whoever runs it makes sure of that.
    """

    name: str
    inputs: tuple[Buffer | None, ...]
    buffers: dict[str, Buffer]
    sizes: tuple[SizeSource, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Result, ...]
    workspace: Expr | int
    device: Device
    constants: tuple[Any, ...] = ()
    checks: tuple[Check, ...] = ()
    writes: tuple[int, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    narrow: bool = False

    @property
    def hints(self) -> dict[Symbol, int]:
        """Sizes as they were when the graph was captured."""
        return {source.symbol: source.hint for source in self.sizes if source.hint is not None}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels, in order of first use."""
        seen: dict[str, Kernel] = {}
        for step in self.steps:
            parts = step.parts if isinstance(step, Launch) else ()
            epilogue = getattr(step, "epilogue", None)
            for call in (*parts, *((epilogue,) if epilogue else ())):
                seen.setdefault(call.kernel.name, call.kernel)
        return tuple(seen.values())
