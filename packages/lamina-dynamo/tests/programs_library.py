"""Small functions for capture to do as Python does: containers, strings, numbers, the standard library."""

# ruff: noqa: B028, E741, F841, UP031
from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import heapq
import itertools
import json
import logging
import math
import operator
import random
import re
import string
import warnings

import numpy as np
from program_cases import case
from programs import Context
from programs_classes import Frozen


@case()
def modules(x):
    a = list(itertools.chain([1], [2, 3])) + list(itertools.islice(itertools.count(5), 3))
    b = functools.reduce(operator.add, [1, 2, 3])
    c = list(itertools.product([1, 2], repeat=2)) + list(itertools.accumulate([1, 2, 3]))
    d = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])]
    heap = [3, 1, 2]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    return x * math.sqrt(4) + math.pi, a, b, c, d, [heapq.heappop(heap) for _ in range(4)]


@case()
def collections_kinds(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    q = collections.deque([1, 2], maxlen=2)
    q.append(3)
    o = collections.OrderedDict(a=1, b=2)
    o.move_to_end("a")
    c = collections.Counter("aab")
    return x + len(d["a"]), d, q, o, c["a"], frozenset([1, 2])


@case()
def sorting(x):
    a = sorted([3, 1, 2], reverse=True)
    b = [("b", 2), ("a", 1)]
    b.sort(key=lambda p: p[0])
    return x * max(a) + min(1, 2), a, b, sorted({"z": 1, "y": 2}), sum([1, 2], 3)


@functools.lru_cache
def cached(n):
    return n * 2


@case(graphs=None)
def lru(x):
    return x * cached(3) + cached(3)


@functools.singledispatch
def sd(v):
    return "obj"


@sd.register
def _(v: int):
    return "int"


@case(graphs=None)
def singled(x):
    return (sd(1), sd("s"), x + 1)


@case(graphs=None)
def copies(x):
    a = [1, [2, 3]]
    b = copy.copy(a)
    c = copy.deepcopy(a)
    b.append(4)
    c[1].append(5)
    return (a, b, c, x + 1, dataclasses.replace(Frozen(1), n=9))


@case()
def dict_views(x):
    d = {"a": 1, "b": 2}
    e = {"b": 3, "c": 4}
    return (
        d.keys() & e.keys(),
        d.keys() | e.keys(),
        sorted(d.items()),
        list(reversed(d)),
        d | e,
        x + 1,
        {**d, **e},
        dict(zip("ab", [1, 2])),
        d.keys() == e.keys(),
    )


@case()
def sets(x):
    a = {1, 2, 3}
    b = frozenset([2, 3, 4])
    return (a & b, a | b, a - b, a ^ b, a <= b, 2 in a, len(a), sorted(a), x * len(b))


@case(graphs=None)
def exit_stack(x):
    log = []
    with contextlib.ExitStack() as st:
        st.callback(log.append, "cb")
        c = st.enter_context(Context(log))
        y = x + 1
    return (y, log)


@case(graphs=None)
def regex(x):
    m = re.match("(\\d+)-(\\w+)", "12-ab")
    return (x * int(m.group(1)), m.group(2))


@case(graphs=None)
def jsonx(x):
    return (json.dumps({"a": [1, 2]}), x + 1)


@case()
def numbers(x):
    return (
        divmod(7, 2),
        7 // 2,
        -7 % 3,
        2**10,
        round(2.567, 1),
        abs(-3),
        int("12"),
        float("1.5"),
        bool([]),
        complex(1, 2),
        0.1 + 0.2,
        10000000000.0,
        math.gcd(4, 6),
        math.isclose(1, 1.0),
        hex(10),
        chr(97),
        ord("a"),
        bin(5),
        (5).bit_length(),
        x + 1,
        pow(2, 3, 5),
        sum([0.1] * 3),
        math.floor(2.5),
        (3).__add__(4),
        int.from_bytes(b"\x01", "big"),
    )


@case()
def strs(x):
    s = "hello world"
    return (
        s.title(),
        s.split(),
        s.replace("o", "0"),
        s.find("w"),
        s.startswith("he"),
        f"{s:>20}|{3:05d}|{2.5:.3e}|{x.shape}",
        s[1:4],
        "a,b".partition(","),
        s.encode(),
        "%s-%d" % ("a", 3),
        ",".join(str(i) for i in range(3)),
        s.count("l"),
        s * 2,
        string.ascii_lowercase[:3],
        "{:>5}".format("x"),
        x * 2,
    )


@case(arguments=lambda: ({"a": {"b": [1, 2, {"c": 3}]}}, np.arange(3.0)))
def nested_mut(d, x):
    d["a"]["b"][2]["c"] += 1
    d["a"]["n"] = x * 2
    d["a"]["b"].insert(0, "z")
    d.setdefault("q", []).append(1)
    d["a"]["b"].pop()
    return len(d)


@case(arguments=lambda: ([3, 1, 2], np.arange(3.0)))
def sort_arg(l, x):
    l.sort()
    l.reverse()
    l += [9]
    l *= 2
    m = l
    m.append(0)
    return (x + len(l), m is l)


@case(
    arguments=lambda: (
        collections.deque([1, 2, 3], maxlen=3),
        collections.OrderedDict(a=1, b=2),
        collections.defaultdict(list),
        collections.Counter("ab"),
        np.arange(3.0),
    )
)
def coll_mut(q, o, d, c, x):
    q.append(4)
    q.rotate(1)
    o.move_to_end("a")
    d["k"].append(x)
    c["a"] += 2
    c.update("bb")
    return (x + len(q), c.most_common(1) if False else c["b"])


@case(graphs=None)
def rng(x):
    random.seed(0)
    a = random.random()
    np.random.seed(0)
    b = np.random.rand()
    return x * a + b


@case(graphs=None)
def warn_log(x):
    logging.getLogger("q").debug("no")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("w")
    return x + 1
