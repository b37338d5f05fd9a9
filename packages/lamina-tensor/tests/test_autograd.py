"""The engine: accumulation, graphs kept and freed, hooks, modes, higher derivatives, custom functions."""

from __future__ import annotations

import gc
import weakref

import pytest

import lamina_tensor as lt
from lamina_tensor.testing import assert_close, gradcheck, gradgradcheck


def leaf(*values: float) -> lt.Tensor:
    return lt.tensor([float(v) for v in values], requires_grad=True)


def test_gradients_accumulate_in_place() -> None:
    x = leaf(1, 2)
    (x * x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first and x.grad.tolist() == [5, 7]


def test_two_leaves_never_share_a_gradient() -> None:
    a, b = leaf(1, 2), leaf(3, 4)
    (a + b).backward(lt.ones(2))
    a.grad.zero_()
    assert b.grad.tolist() == [1, 1]


def test_given_gradient_is_not_taken_over() -> None:
    a, given = leaf(1, 2), lt.ones(2)
    (a + 0).backward(given)
    a.grad.zero_()
    assert given.tolist() == [1, 1]


def test_second_backward_needs_retain_graph() -> None:
    y = (leaf(1, 2) * leaf(3, 4)).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


ERRORS = [
    (lambda: leaf(1, 2).backward(), "implicitly created only for scalar outputs"),
    (lambda: lt.ones(1).sum().backward(), "element 0 of tensors does not require grad"),
    (lambda: leaf(1).backward(lt.ones(2)), "Mismatch in shape"),
    (lambda: leaf(1).add_(1), "a leaf Variable that requires grad is being used in an in-place operation"),
    (lambda: leaf(1, 2)[0].add_(1), "a view of a leaf Variable that requires grad"),
    (lambda: lt.tensor([1], requires_grad=True), "floating point and complex"),
    (lambda: leaf(1).numpy(), "Tensor that requires grad"),
    (lambda: setattr(leaf(1) * 2, "requires_grad", False), "leaf variables"),
    (lambda: lt.autograd.grad(leaf(1).sum(), leaf(1)), "not have been used in the graph"),
    (lambda: lt.tensor([1, 2]).add_(1.5), "result type Float can't be cast to the desired output type Long"),
    (lambda: lt.ones(2).add_(lt.ones(3, 2)), "doesn't match the broadcast shape"),
    (lambda: setattr(leaf(1), "grad", lt.ones(3)), "different size"),
    (lambda: lt.ones(1).register_hook(print), "doesn't require gradient"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[m[:30] for _, m in ERRORS])
def test_errors(call, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


def test_saved_tensor_written_since_is_an_error_that_names_versions() -> None:
    y = leaf(1, 2).exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"FloatTensor \[2\].*ExpBackward0, is at version 1; expected version 0"):
        y.sum().backward()


def test_in_place_chain_equals_out_of_place() -> None:
    x = leaf(0.5, -2, 3)
    (((x * 2).add_(x).mul_(3)).relu_().sigmoid_()).sum().backward()
    z = leaf(0.5, -2, 3)
    (((z * 2 + z) * 3).relu().sigmoid()).sum().backward()
    assert_close(x.grad, z.grad)


def test_write_of_a_tracked_value_into_a_plain_tensor() -> None:
    target, w = lt.zeros(3), leaf(2)
    view = target[1:2]
    view.copy_(w * 3)
    target[0] = 4
    assert target.requires_grad and view.requires_grad and type(target.grad_fn).__name__ == "CopySlices"
    (target * target).sum().backward()
    assert w.grad.tolist() == [36]


def test_overwritten_value_gets_no_gradient() -> None:
    x = leaf(1, 2)
    y = x * 2
    y[0] = 5
    y.sum().backward()
    assert x.grad.tolist() == [0, 2]


def test_views_see_history_of_their_base() -> None:
    x = leaf(1, 2)
    y = x * 1
    view = y[1]
    y.mul_(3)
    view.backward()
    assert x.grad.tolist() == [0, 3]


def test_view_made_without_grad_mode_cannot_be_written_with_it() -> None:
    x = leaf(1, 2)
    with lt.no_grad():
        view = x[0]
    assert not view.requires_grad
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.add_(1)


def test_modes() -> None:
    x = leaf(1)
    with lt.no_grad():
        assert not (x * 2).requires_grad
        with lt.enable_grad():
            assert (x * 2).requires_grad
    with lt.set_grad_enabled(False):
        assert not lt.is_grad_enabled()
    assert lt.is_grad_enabled()

    @lt.no_grad()
    def made():
        return x * 2

    @lt.no_grad()
    def generated():
        yield lt.is_grad_enabled()
        yield lt.is_grad_enabled()

    assert not made().requires_grad
    assert [(flag, lt.is_grad_enabled()) for flag in generated()] == [(False, True), (False, True)]
    with lt.inference_mode():
        inner = lt.ones(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        x * inner
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        inner.add_(1)


def test_hooks() -> None:
    x = leaf(1, 2)
    seen = []
    handle = x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    y = x * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.sum().backward()
    assert seen == [[1, 1], [6, 6]] and y.grad.tolist() == [1, 1]
    handle.remove()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_grad_of_several_inputs() -> None:
    x, z = leaf(1, 2), leaf(1)
    y = x * 2
    loss = (y * y).sum()
    gx, gy = lt.autograd.grad(loss, [x, y], retain_graph=True)
    assert gx.tolist() == [8, 16] and gy.tolist() == [4, 8] and x.grad is None
    assert lt.autograd.grad(loss, [x, z], retain_graph=True, allow_unused=True)[1] is None
    assert lt.autograd.grad(loss, [z], materialize_grads=True)[0].tolist() == [0]


def test_backward_into_chosen_inputs() -> None:
    x, z = leaf(1), leaf(2)
    (x * z).backward(inputs=[x])
    assert x.grad.tolist() == [2] and z.grad is None


def test_third_derivative() -> None:
    x = lt.tensor(2.0, requires_grad=True)
    y = x**3
    for expected in (12.0, 12.0, 6.0):
        (y,) = lt.autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_none_gradients_flow_past_unused_branches() -> None:
    x = leaf(1, 2)
    top, index = (x * 2).max(0)
    assert not index.requires_grad
    top.backward()
    assert x.grad.tolist() == [0, 2]


def test_gradients_have_the_shape_and_dtype_of_their_inputs() -> None:
    a = lt.ones(2, 1, 3, dtype=lt.float64, requires_grad=True)
    b = lt.ones(4, 1, requires_grad=True)
    (a * b).sum().backward()
    assert (a.grad.shape, a.grad.dtype) == ((2, 1, 3), lt.float64)
    assert (b.grad.shape, b.grad.dtype, b.grad.tolist()) == ((4, 1), lt.float32, [[6]] * 4)


def test_deep_graph_needs_no_recursion() -> None:
    x = leaf(1)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1]
    del y


def test_graph_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        x = leaf(1, 2)
        y = x.exp()
        reference = weakref.ref(y.grad_fn)
        del y
        assert reference() is None
    finally:
        gc.enable()


class Scale(lt.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor, x.sum()

    @staticmethod
    def backward(ctx, grad, total):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False) and x.shape == grad.shape
        return grad * ctx.factor + total, None


class Exp(lt.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class Double(lt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Once(lt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @lt.autograd.once_differentiable
    def backward(ctx, grad):
        return grad * 2


def test_custom_function() -> None:
    x = leaf(1, 2, 3)
    out, total = Scale.apply(x, 3)
    (out.sum() + total).backward()
    assert x.grad.tolist() == [4, 4, 4]


def test_custom_function_saves_its_output_and_differentiates_twice() -> None:
    x = lt.tensor([0.5, 1.0], dtype=lt.float64, requires_grad=True)
    assert gradcheck(Exp.apply, x) and gradgradcheck(Exp.apply, x)


def test_custom_function_that_writes_its_input() -> None:
    x = leaf(1, 2)
    y = x * 1
    assert Double.apply(y) is y
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_once_differentiable() -> None:
    x = leaf(1, 2)
    (first,) = lt.autograd.grad((Once.apply(x * x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_gradcheck_of_writes_and_views() -> None:
    x = lt.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=lt.float64, requires_grad=True)
    w = lt.tensor([[0.5, 1.0], [2.0, -1.0]], dtype=lt.float64, requires_grad=True)

    def program(x, w):
        y = (x @ w).tanh() * 1
        y[0] = w[1] * x[0]
        flat = y.view(4)
        flat[1:3].mul_(2)
        return y.softmax(-1)

    assert gradcheck(program, (x, w)) and gradgradcheck(program, (x, w))
    assert not gradcheck(lambda a: a.detach() * a, (x,), raise_exception=False)
