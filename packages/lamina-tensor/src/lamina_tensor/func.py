"""Functions of functions: gradients by reverse mode, and modules called with other parameters.

>>> from lamina_tensor import tensor
>>> grad(lambda x: (x * x).sum())(tensor([1.0, 2.0]))
tensor([2., 4.])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .autograd.engine import grad as gradients
from .autograd.grad_mode import enable_grad
from .namespace import root
from .tensor import Tensor

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]

Argnums = int | tuple[int, ...]


def _leaves(args: tuple[Any, ...], argnums: Argnums) -> tuple[list[Any], list[Tensor]]:
    """The arguments, with those to differentiate by as new leaves (with their history inside an outer gradient)."""
    wanted = (argnums,) if isinstance(argnums, int) else argnums
    inputs = list(args)
    for k in wanted:
        inputs[k] = _leaf(args[k])
    return inputs, [inputs[k] for k in wanted]


def _leaf(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
    raise TypeError(f"can only differentiate with respect to tensors, got {type(value).__name__}")


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (gradient of ``func``'s scalar result, the result), or with aux (g, (result, aux)).

    Raises (when called):
        RuntimeError: the result is no scalar tensor.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            inputs, leaves = _leaves(args, argnums)
            result = func(*inputs, **kwargs)
            value, aux = result if has_aux else (result, None)
            if not isinstance(value, Tensor) or value.dim():
                raise RuntimeError("grad: the function must return a scalar tensor (use jacrev for more)")
            nested = any(isinstance(a, Tensor) and a.requires_grad for a in args)
            found = gradients(value, leaves, create_graph=nested, allow_unused=True)
        found = tuple(root.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True))
        value = value if nested else value.detach()
        return (found[0] if isinstance(argnums, int) else found), ((value, aux) if has_aux else value)

    return run


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of ``func``'s scalar result by its argument (or arguments) ``argnums``."""
    both = grad_and_value(func, argnums, has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return run


def vjp(func: Callable[..., Any], *primals: Tensor) -> tuple[Any, Callable[..., Any]]:
    """``func``'s result, and the function from its cotangents to those of the primals (a tuple)."""
    with enable_grad():
        inputs, leaves = _leaves(primals, tuple(range(len(primals))))
        result = func(*inputs)

    def pull(*cotangents: Any) -> tuple[Any, ...]:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        outs, cts = (result, given) if isinstance(result, tuple) else ((result,), (given,))
        found = gradients(outs, leaves, cts, retain_graph=True, allow_unused=True)
        return tuple(root.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True))

    return (tuple(r.detach() for r in result) if isinstance(result, tuple) else result.detach()), pull


def jacrev(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``func``, of shape result shape + argument shape, row by row."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            inputs, leaves = _leaves(args, argnums)
            result = func(*inputs, **kwargs)
            nested = any(isinstance(a, Tensor) and a.requires_grad for a in args)
            flat = result.reshape(-1)
            rows = [
                gradients(flat[k], leaves, retain_graph=True, create_graph=nested, allow_unused=True)
                for k in range(flat.shape[0])
            ]
        columns = []
        for at, leaf in enumerate(leaves):
            parts = [root.zeros_like(leaf) if row[at] is None else row[at] for row in rows]
            columns.append(root.stack(parts, 0).reshape((*result.shape, *leaf.shape)))
        return columns[0] if isinstance(argnums, int) else tuple(columns)

    return run


def jvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: bool = False
) -> tuple[Any, ...]:
    """``func``'s result and its derivative in the direction of ``tangents``: (result, derivative), or with aux
    (result, derivative, aux).

    Computed by reverse mode twice: the transpose of the function from cotangents to gradients, which is linear.

    Raises:
        ValueError: not as many tangents as primals, or one of another shape.
    """
    if len(primals) != len(tangents) or any(p.shape != t.shape for p, t in zip(primals, tangents, strict=False)):
        raise ValueError("jvp: expected one tangent for each primal, of its shape")
    with enable_grad():
        inputs, leaves = _leaves(tuple(primals), tuple(range(len(primals))))
        result = func(*inputs)
        value, aux = result if has_aux else (result, None)
        outs = value if isinstance(value, tuple) else (value,)
        nested = any(t.requires_grad for t in (*primals, *tangents))
        found = _pushed(outs, leaves, tangents, nested)
    outs = outs if nested else tuple(o.detach() for o in outs)
    pair = (outs, found) if isinstance(value, tuple) else (outs[0], found[0])
    return (*pair, aux) if has_aux else pair


def _pushed(outs: tuple[Tensor, ...], leaves: list[Tensor], tangents: Any, nested: bool) -> tuple[Tensor, ...]:
    """Derivatives of ``outs`` in a direction; zeros where they do not depend on the leaves."""
    moving = [k for k, out in enumerate(outs) if out.requires_grad]
    seeds = [root.zeros_like(outs[k]).requires_grad_() for k in moving]
    pulled = gradients([outs[k] for k in moving], leaves, seeds, create_graph=True, allow_unused=True) if moving else []
    linear = [(g, t) for g, t in zip(pulled, tangents, strict=False) if g is not None and g.requires_grad]
    found: Any = [None] * len(seeds)
    if linear:
        results, directions = zip(*linear, strict=True)
        found = gradients(results, seeds, directions, create_graph=nested, allow_unused=True)
    known = {k: tangent for k, tangent in zip(moving, found, strict=True) if tangent is not None}
    return tuple(known[k] if k in known else root.zeros_like(out) for k, out in enumerate(outs))


def jacfwd(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """As ``jacrev`` for one argument, column by column: for functions with more results than arguments."""

    def run(*args: Any) -> Any:
        point = args[argnums]
        whole = lambda x: func(*args[:argnums], x, *args[argnums + 1 :])  # noqa: E731
        basis = root.eye(point.numel(), dtype=point.dtype, device=point.device)
        columns = [jvp(whole, (point,), (row.reshape(point.shape),))[1] for row in basis]
        return root.stack(columns, -1).reshape((*columns[0].shape, *point.shape))

    return run


def hessian(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that gives the matrix of second derivatives of ``func``'s scalar result."""
    return jacrev(grad(func, argnums), argnums)


def functional_call(
    module: Any, parameters_and_buffers: Mapping[str, Tensor], args: Any = None, kwargs: Any = None
) -> Any:
    """Call a module with these tensors in place of its own of the same dotted names.

    Raises:
        AttributeError: the module has no such parameter or buffer.
    """
    saved = []
    try:
        for path, value in parameters_and_buffers.items():
            owner, _, name = path.rpartition(".")
            holder = module.get_submodule(owner)
            table = next((t for t in (holder._parameters, holder._buffers) if name in t), None)
            if table is None:
                raise AttributeError(f"functional_call: {type(module).__name__} has no parameter or buffer {path!r}")
            saved.append((table, name, table[name]))
            table[name] = value
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for table, name, value in reversed(saved):
            table[name] = value


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, **options: Any) -> Callable[..., Any]:
    """Not there. NotImplementedError: always."""
    raise NotImplementedError(
        "vmap: operators have no batching rules yet. Write the batch dimension out (broadcasting, einsum, bmm), or "
        "loop over it and stack: inside lamina.compile such a loop is unrolled and fused."
    )
