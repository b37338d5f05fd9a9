"""Functions with calls at every kind of place.

`ext` is where they are split. Used by test_resume and the whole-capture tests.
"""

from __future__ import annotations

import sys

log: list[object] = []
mode: object = None
sites: list[tuple[object, int, frozenset[str]]] = []
calls = [0]


class CM:
    def __init__(self, name, suppress=False):
        self.name, self.suppress = name, suppress

    def __enter__(self):
        log.append(("enter", self.name))
        return self

    def __exit__(self, kind, value, traceback):
        log.append(("exit", self.name, kind and kind.__name__, str(value)))
        return self.suppress


def ext(*args, **kwargs):
    frame = sys._getframe(1)
    sites.append((frame.f_code, frame.f_lasti, frozenset(k for k in frame.f_locals if not k.startswith("."))))
    log.append(("ext", args, tuple(kwargs.items())))
    calls[0] += 1
    if mode == calls[0]:
        raise KeyError(f"ext{calls[0]}")
    return 10 + len(args)


def late(x):
    log.append(("late", x))
    if mode == "late":
        raise ValueError("late")
    return x


def with_block(x, cm):
    a = x + 1
    with cm as v:
        b = ext(a, v.name)
        c = late(b) * 2
    return a + c


def return_in_with(x, cm):
    with cm:
        y = ext(x)
        return late(y)


def nested_with(x, cm):
    with CM("outer") as o, cm as i:
        y = ext(x, k=3)
        y += late(y)
    z = ext(y)
    return z, y, o.name, i is not None


def with_in_loop(x, cm):
    t = 0
    for i in range(3):
        with cm:
            t += ext(i)
            if i == 1:
                continue
            late(t)
        t += 100
    else:
        t += 1000
    return t


def try_block(x, cm):
    try:
        y = ext(x)
        y = late(y)
    except KeyError as e:
        y = ("key", str(e))
    except ValueError as e:
        y = ("val", str(e), ext("in handler"))
    else:
        y = ext(y)
    finally:
        log.append("fin")
        late("in finally")
    return y


def shared_cells(x, cm):
    k = 5
    out = []

    def inner(d):
        nonlocal k
        k += d
        return k

    with cm:
        for q in (1, 2):
            r = ext(inner(q))
            out.append((r, inner(late(1)), x))
        k = 100
    g = lambda: (x, k)  # noqa: E731
    return out, k, inner(1), g()


def operands(x, cm):
    with cm:
        return [x, ext(x), {"a": late(2)}]


def while_loop(x, cm):
    while x > 0:
        x -= 1
        try:
            with cm:
                if ext(x) and x == 1:
                    break
        finally:
            late(x)
    return x


def exception_group(x, cm):
    try:
        ext(x)
        raise ExceptionGroup("g", [KeyError(1), ValueError(2)])
    except* KeyError as e:
        r = ext(len(e.exceptions))
    except* ValueError:
        r = (r, late(5))
    return r


def match_statement(x, cm):
    match {"k": [x, 2]}:
        case {"k": [a, int(b)]}:
            with cm:
                return ext(a, b), late(a)
        case _:
            return None


def comprehension(x, cm):
    with cm:
        y = [v + ext(v) for v in range(x)]
    return y, {k: late(k) for k in y}


def star_call(x, cm):
    args, kwargs = (x, 2), {"k": 3}
    with cm:
        return late(ext(*args, **kwargs))


ZOO = [
    with_block, return_in_with, nested_with, with_in_loop, try_block, shared_cells, operands, while_loop,
    exception_group, match_statement, comprehension, star_call,
]  # fmt: skip


def run(function, how, suppress):
    """One run: its result or error, the log, and the sites passed."""
    global mode
    import traceback

    mode = how
    log.clear()
    sites.clear()
    calls[0] = 0
    try:
        result = ("returned", function(3, CM("cm", suppress)))
    except Exception as e:  # noqa: BLE001  (the error is the outcome that is compared)
        line = None
        if function.__name__ != "exception_group":
            line = traceback.extract_tb(e.__traceback__)[-1].lineno
        result = ("raised", type(e).__name__, str(e), line, type(e.__context__).__name__)
    return result, list(log), list(sites)
