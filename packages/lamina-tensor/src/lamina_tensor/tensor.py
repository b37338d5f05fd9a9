"""``Tensor``: what is written by hand about it. Most methods are generated from the operators (``methods``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lamina_fx import TensorSpec
from lamina_prims import Operator, operator
from lamina_prims.memory_formats import order_of

from ._C import TensorBase, alias, become
from .autograd.engine import backward
from .autograd.hooks import RemovableHandle, register_accumulate_hook, register_tensor_hook, retain_grad
from .autograd.node import edge_of
from .conversion import Conversion
from .dispatch import dispatch_fast
from .indexing import getitem, setitem
from .inplace import copy_into
from .metadata import MetadataChanges
from .views import memory_of, offset_of

__all__ = ["Tensor"]


class Tensor(TensorBase, Conversion, MetadataChanges):
    """A multi-dimensional array with a dtype, a device and, if asked for, gradients.

    Make one with ``tensor``, ``zeros``, ``from_numpy`` and so on. ``Tensor(2, 3)`` is an uninitialised tensor of that
    shape and ``Tensor(data)`` a copy in the default dtype.
    """

    __lamina_priority__ = 1
    __array_priority__ = 1000

    def __new__(cls, *data: Any, device: Any = None) -> Any:  # noqa: D102
        from .creation import legacy_tensor

        made = legacy_tensor(data, device)
        return made if cls is Tensor else alias(made, cls, False)

    @staticmethod
    def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
        """A tensor of class ``cls`` over the memory of ``data``."""
        made = alias(data, cls, False)
        if require_grad:
            made.requires_grad_()
        return made

    def as_subclass(self, cls: type[Tensor]) -> Any:
        """The same memory as an instance of ``cls``, with the same history."""
        made = alias(self, cls, False)
        if self._requires_grad:
            edge = edge_of(self)
            if type(edge) is tuple:
                made._grad_fn, made._output_nr = edge
            else:
                made._requires_grad = True
        return made

    def __lamina_operator__(self, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by an operator that finds this tensor among its arguments."""
        return dispatch_fast(op, args, kwargs)

    # -- shape -----------------------------------------------------------------------------------------

    def size(self, dim: int | None = None) -> Any:
        """Sizes, or the size of one dimension. IndexError: no such dimension."""
        if dim is None:
            return self.shape
        return self._sizes[_dim(dim, self.ndim)]

    def stride(self, dim: int | None = None) -> Any:
        """Strides in elements, or that of one dimension."""
        return self._strides if dim is None else self._strides[_dim(dim, self.ndim)]

    def dim(self) -> int:
        """Number of dimensions."""
        return self.ndim

    ndimension = dim

    def numel(self) -> Any:
        """Number of elements."""
        return self.shape.numel()

    nelement = numel

    def storage_offset(self) -> int:
        """Elements between the start of the storage and this tensor's first."""
        return offset_of(self)

    def __lamina_memory__(self) -> tuple[Any, Any]:
        """The offset into the storage, and how many elements that has: what ``as_strided`` asks for."""
        return memory_of(self)

    def data_ptr(self) -> int:
        """Address of the first element (0 without data)."""
        return self._data_ptr

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    itemsize = property(element_size)
    nbytes = property(lambda self: self.numel() * self.dtype.itemsize)

    def untyped_storage(self) -> Any:
        """The storage, which views share."""
        return self.storage

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Are the elements in row-major order without gaps; or, as ``memory_format`` says, with the channels last."""
        order = order_of(memory_format)
        if order is None:
            return memory_format in (None, "contiguous_format") and self.spec.is_contiguous()
        if self.ndim != len(order):
            return False
        shape, strides = (tuple([given[d] for d in order]) for given in (self.shape, self.stride()))
        return TensorSpec(shape, self.dtype, strides).is_contiguous()

    def is_set_to(self, other: Tensor) -> bool:
        """Is ``other`` exactly the same view of the same memory."""
        return self.storage is other.storage and self.spec == other.spec and offset_of(self) == offset_of(other)

    def __len__(self) -> Any:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._sizes[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(self._sizes[0])])

    def __getitem__(self, index: Any) -> Any:
        return getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        setitem(self, index, value)

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, int, float, complex)):
            return bool(operator("any")(operator("eq")(self, element)))
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element).__name__}."
        )

    __hash__ = object.__hash__

    # -- autograd --------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Is a gradient computed for this tensor. May be set on leaves.

        Raises (when set):
            RuntimeError: not a leaf, or not a floating point or complex tensor.
        """
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not value and not self.is_leaf:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if value and self.dtype.kind not in ("float", "complex"):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self._requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set ``requires_grad``; returns the tensor."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """True for tensors that no recorded operation made."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        """The node that leads to this tensor's inputs, or None for a leaf."""
        if self._requires_grad:
            edge = edge_of(self)
            return edge[0] if type(edge) is tuple else None
        return None

    @property
    def output_nr(self) -> int:
        """Which result of ``grad_fn`` this is."""
        return self._output_nr

    def _check_grad(self, value: Any) -> None:
        """Called by ``TensorBase`` when ``grad`` is set.

        Raises:
            TypeError, RuntimeError: no tensor, or of another shape or dtype.
        """
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value._sizes != self._sizes:
            raise RuntimeError(
                f"assigned grad has data of a different size: {list(value._sizes)}, expected {list(self._sizes)}"
            )
        if value.dtype is not self.dtype:
            raise RuntimeError(f"assigned grad has data of a different type: {value.dtype}, expected {self.dtype}")

    @property
    def data(self) -> Any:
        """The same memory without history, whose writes autograd does not see. Setting it replaces the memory."""
        return alias(self, Tensor, True)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        become(self, value, True)

    def set_(self, source: Tensor) -> Any:
        """Let this tensor be over the memory of ``source``; returns it."""
        become(self, source, False)
        return self

    def detach(self) -> Any:
        """The same memory without history; writes to it are seen by autograd."""
        return alias(self, Tensor, False)

    def detach_(self) -> Any:
        """Drop this tensor's history; returns it. RuntimeError: it is a view."""
        if self._base is not None and not self._no_grad_view:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self._grad_fn = None
        self._output_nr = 0
        self._requires_grad = False
        return self

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Accumulate gradients of this tensor into the leaves; see ``autograd.backward``."""
        backward(self, None if gradient is None else [gradient], retain_graph, create_graph, inputs)

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad)`` when the gradient is known; a returned tensor replaces it."""
        return register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(tensor)`` after a gradient was accumulated into ``.grad``."""
        return register_accumulate_hook(self, hook)

    def retain_grad(self) -> None:
        """Keep ``.grad`` though this is no leaf."""
        retain_grad(self)

    @property
    def retains_grad(self) -> bool:
        """True after ``retain_grad`` on a tensor that is no leaf."""
        return self._retains_grad

    def is_inference(self) -> bool:
        """Was it made in inference mode."""
        return self._inference

    def _is_view(self) -> bool:
        return self._base is not None

    # -- writing ---------------------------------------------------------------------------------------

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """Write ``src`` (broadcast and converted) into this tensor; returns it."""
        return copy_into(self, src, non_blocking)

    def fill_(self, value: Any) -> Any:
        """Set all elements; returns the tensor."""
        return copy_into(self, value)

    def zero_(self) -> Any:
        """Set all elements to zero; returns the tensor."""
        return copy_into(self, 0)

    def fill_diagonal_(self, fill_value: float, wrap: bool = False) -> Any:
        """Set the main diagonal of a matrix; returns the tensor. ``wrap`` (for tall matrices) is not supported."""
        if wrap:
            raise NotImplementedError("fill_diagonal_: wrap=True is not supported")
        copy_into(operator("diagonal")(self), fill_value)
        return self

    def new_tensor(
        self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any
    ) -> Any:
        """A tensor of ``data`` with this tensor's dtype unless another is given."""
        from .creation import tensor

        return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)

    # -- copies ----------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        from .copying import deep_copy

        return deep_copy(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .copying import reduce

        return reduce(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from .printing import tensor_text

        return tensor_text(self)

    def __format__(self, spec: str) -> str:
        if self.ndim == 0 and type(self) is Tensor and self._array is not None:
            return self.item().__format__(spec)
        return object.__format__(self, spec)


def _dim(dim: int, ndim: int) -> int:
    if not -max(ndim, 1) <= dim < max(ndim, 1):
        low, high = -max(ndim, 1), max(ndim, 1) - 1
        raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")
    return dim
