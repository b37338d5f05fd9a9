"""Graph breaks: how many graphs a function takes, and that results, effects and errors are Python's."""

from __future__ import annotations

import random
import time
import warnings

import numpy as np
import pytest

import lamina_tensor as lt
from lamina.entry import compile
from lamina.frontend import LaminaFrontend
from lamina_dynamo import disable
from lamina_dynamo.backends import CountingBackend
from lamina_dynamo.capture import reset
from lamina_dynamo.eval import optimize
from lamina_tensor import nn

FRONTEND = LaminaFrontend()
CASES = []


@disable
def outside(*args):
    return args[0] if args else None


def case(graphs, arguments=lambda: (lt.arange(4).float(),)):
    def register(function):
        CASES.append((function, graphs, arguments))
        return function

    return register


def leaf():
    return (lt.arange(4).float().requires_grad_(),)


class Log:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")

    def __exit__(self, *error):
        self.log.append(error[0] and error[0].__name__)


def callee(x):
    y = x + 1
    outside()
    return y * 2


def middle(x):
    return callee(x + 3) - 1


class Base:
    def m(self, x):
        x = x + 1
        outside()
        return x * 2


class Derived(Base):
    def m(self, x):
        return super().m(x) + 1


class Init:
    def __init__(self, x):
        outside()
        self.a = x


class Square(lt.autograd.Function):
    @staticmethod
    def forward(ctx, x, k=1):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x * ctx.k, None


class Writes(lt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


@case(2)
def in_callee(x):
    return callee(x * 3) + 1


@case(2)
def in_callee_of_callee(x):
    return middle(x * 3) + 1


@case(2)
def in_method_by_super(x):
    return Derived().m(x)


@case(2)
def in_init(x):
    return Init(x + 1).a * 2


@case(3)
def in_callee_twice(x):
    return callee(callee(x))


def callee_with_a_loop(v, log):
    for k in range(3):
        v = v * 0.5 + k
        if k == 1:
            v = v + outside(v, log)
    return v


@case(3)
def resumed_in_a_resumed_callee(x):
    """The locals of a resume function stand in another order than the user's."""
    log = []
    return callee_with_a_loop(x * x, log), log


@case(3)
def in_callee_in_loop(x):
    for _ in range(4):
        x = callee(x)
    return x


@case(2)
def in_callee_that_raises(x):
    log = []

    def inner(v):
        y = v + 1
        outside()
        log.append(y)
        raise KeyError("k")

    try:
        inner(x)
    except KeyError:
        log.append("caught")
    return x * 2, log


@case(2)
def in_with(x):
    log = []
    with Log(log):
        y = x + 1
        outside()
        y = y * 2
    return y, log


@case(2)
def in_try(x):
    try:
        y = x + 1
        outside()
        y = y * 2
        raise ValueError("a")
    except ValueError as error:
        return y, str(error)


@case(3)
def in_for(x):
    for _ in range(5):
        x = x + 1
        outside()
        x = x * 2
    return x


@case(2)
def in_comprehension(x):
    y = x * 2
    return y + sum([outside(i) for i in range(3)])


@case(2)
def in_closure(x):
    n = x + 1

    def double():
        nonlocal n
        n = n * 2

    double()
    outside()
    double()
    return n


@case(1)
def item(x):
    n = x.sum().item()
    return x * n + 1


@case(1)
def to_float(x):
    return x * float(x.sum()) + 1


@case(2)
def to_int(x):
    return x * (int(x.sum()) + 1) + 1


@case(2)
def branch_on_data(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 1


@case(2)
def warning(x):
    y = x * 2
    warnings.warn("hey", stacklevel=1)
    return y + 1


@case(2)
def clock(x):
    y = x * 2
    now = time.time()
    return y + 1, now > 0


@case(2)
def random_numbers(x):
    y = x * 2
    random.seed(3)
    a = random.random()
    np.random.seed(3)
    return y + 1, a, np.random.rand()


@case(None)
def class_statement(x):
    y = x * 2

    class Local:
        z = 3

    return y + Local.z


@case(None)
def assignment_of_data(x):
    y = x * 2
    y.data = lt.ones(4)
    return y + 1


@case(1, leaf)
def custom_function(x):
    return Square.apply(x + 1, 3) * 2


@case(1, leaf)
def custom_function_and_backward(x):
    Square.apply(x, 2).sum().backward()
    return x.grad


@case(None, leaf)
def custom_function_that_writes(x):
    return Writes.apply(x * 2) + 1


@case(None, leaf)
def tensor_hook(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    return x.grad


@case(None, leaf)
def backward_behind_a_break(x):
    y = x * 2
    outside()
    y.sum().backward()
    return x.grad


@case(None, lambda: (lt.arange(4).float(), []))
def error_after_effects(x, log):
    log.append(1)
    y = x * 2
    log.append(y)
    return {}["missing"]


@case(None, lambda: (lt.arange(4).float(), []))
def interrupted(x, log):
    log.append(x + 1)
    raise KeyboardInterrupt


@case(None, lambda: (lt.arange(4).float(), []))
def error_through_with(x, log):
    with Log(log):
        y = x + 1
        raise ValueError(y.shape)


def plain(value):
    """Something that compares."""
    if isinstance(value, lt.Tensor):
        return str(value.dtype), value.requires_grad, value.detach().numpy().tolist()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def outcome(function, arguments):
    error = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = plain(function(*arguments))
        except BaseException as caught:  # noqa: BLE001  (the error and its last line are the outcome)
            trace = caught.__traceback__
            while trace.tb_next is not None:
                trace = trace.tb_next
            result, error = None, (type(caught), caught.args, trace.tb_frame.f_code.co_name, trace.tb_lineno)
    return result, error, plain(arguments)


@pytest.mark.parametrize(("function", "graphs", "arguments"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_break(function, graphs, arguments):
    reset()
    backend = CountingBackend()
    compiled = optimize(backend, FRONTEND, strict=True)(function)
    for _ in range(3):
        assert outcome(compiled, arguments()) == outcome(function, arguments())
    if graphs is not None:
        assert len(backend.graphs) == graphs


def test_backward_follows_hooks_and_history():
    """A step that is compiled for a leaf without hooks is not used for other tensors."""
    reset()
    w = lt.ones(3).requires_grad_()

    @compile(backend="reference")
    def step(p):
        loss = (p * 2).sum()
        loss.backward()
        return loss

    def gradient(p):
        w.grad = None
        step(p)
        return w.grad.tolist()

    assert gradient(w) == [2, 2, 2]
    assert gradient(w * 3) == [6, 6, 6]
    with w.register_hook(lambda g: g * 10):
        assert gradient(w) == [20, 20, 20]
    assert gradient(w) == [2, 2, 2]


def run(function, calls, **settings):
    """The number of graphs of some calls, each compared with Python."""
    reset()
    backend = CountingBackend()
    compiled = optimize(backend, FRONTEND, strict=True, **settings)(function)
    for arguments in calls:
        assert plain(compiled(*arguments)) == plain(function(*arguments))
    return len(backend.graphs)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, x):
        self.n += 1
        return x * self.n


class Instance:
    def __init__(self, unread):
        self.unread, self.k = unread, 2

    def run(self, x):
        return x * self.k


@pytest.mark.parametrize(
    ("graphs", "function", "calls"),
    [
        (2, lambda x: x * 2 + 1, [(lt.ones(n),) for n in (4, 5, 6, 7)]),
        (4, lambda x: x * 2 + 1, [(lt.ones(n),) for n in (4, 5, 1, 0)]),
        (3, lambda x: x * 2 + 1, [(lt.ones(n),) for n in (1, 4, 5, 0)]),
        (2, lambda x, k: x * k, [(lt.ones(3), k) for k in (2, 3, 4, 0, 1, -1)]),
        (2, lambda x, k: x * k, [(lt.ones(3), k) for k in (1.5, 2.5, 3.5, 0.0, -0.0, float("inf"))]),
        (2, lambda x, k: x * k, [(lt.ones(3), k) for k in (True, False, True)]),
        (2, lambda x, k: x * k if k > 0.5 and k else x, [(lt.ones(3), k) for k in (1.5, 2.5, 3.5, 4.5)]),
        (1, lambda q, x: q.run(x), [(Instance(i), lt.ones(3)) for i in range(100)]),
    ],
)
def test_recompiles(graphs, function, calls):
    assert run(function, calls) == graphs


def test_a_counter_is_state():
    reset()
    backend = CountingBackend()
    plainly, module = Counter(), Counter()
    compiled = optimize(backend, FRONTEND, strict=True)(module.forward)
    for _ in range(10):
        assert plain(compiled(lt.ones(3))) == plain(plainly(lt.ones(3)))
    assert len(backend.graphs) == 2


def test_a_custom_function_is_not_kept_alive():
    import gc
    import weakref

    def once():
        class Local(lt.autograd.Function):
            forward = staticmethod(lambda ctx, x: x * 2)
            backward = staticmethod(lambda ctx, g: g * 2)

        compile(lambda x: Local.apply(x), backend="reference")(lt.ones(3).requires_grad_())
        return weakref.ref(Local)

    reference = once()
    gc.collect()
    assert reference() is None
