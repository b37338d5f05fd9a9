"""Random Python functions over tensors: control flow, iterators and effects are drawn, so one seed gives one source.

Beside straight code there are nested loops with ``break``, ``continue`` and ``else``, ``try`` in all its forms, context
managers that swallow errors, generators that are sent to and closed, iterators with several holders, closures that
rebind, containers that change while they are iterated, numbers read from tensors, and calls that break the graph.

>>> print(function_source(3).splitlines()[0])
def program(x, y, log, table):
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager

__all__ = ["function_source"]

_TENSORS = [
    "{}.sin()", "-{}", "{} * 0.5", "{}.tanh() + 1", "{} + {}", "{} * {}", "{} - {}", "lamina.maximum({}, {})",
    "({} + 1) / ({}.abs() + 2)", "lamina.where({} > 0, {}, {})", "{} + {}.mean()", "{}.cumsum(0)", "{}.flip(0)",
]  # fmt: skip
_NUMBERS = ["len(log)", "len(table)", "x.shape[0]", "{}", "{} + 1", "{} % 3", "max({}, 2)", "{} * 2 - 1"]
_TESTS = [
    "len(log) % 2 == 0",
    "{} > 1",
    "{} in (1, 2)",
    "'k1' in table",
    "x.ndim == 1 and {} < 3",
    "not log",
    "{} != 2",
]


class FunctionWriter:
    """Draws statements until a budget is spent; ``tensors`` and ``numbers`` are the names that are bound for sure."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.tensors = ["x", "y", "total"]
        self.numbers = ["1", "2"]
        self.loops = 0
        self.generating = False

    # -- parts -----------------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        """One line at this depth."""
        self.lines.append("    " * self.depth + text)

    def name(self, kind: str = "v") -> str:
        """A new name."""
        self.count += 1
        return f"{kind}{self.count}"

    def filled(self, forms: list[str], names: list[str]) -> str:
        """One of the forms with its holes filled."""
        form = self.random.choice(forms)
        return form.format(*[self.random.choice(names) for _ in range(form.count("{}"))])

    def tensor(self) -> str:
        """An expression of a tensor."""
        return self.filled(_TENSORS, self.tensors)

    def number(self) -> str:
        """An expression of a small int."""
        return self.filled(_NUMBERS, self.numbers)

    def test(self) -> str:
        """A condition."""
        return self.filled(_TESTS, self.numbers)

    def chance(self, share: float) -> bool:
        """True so often."""
        return self.random.random() < share

    def block(self, least: int = 1) -> None:
        """Some statements one level deeper; what they bind may be unbound behind them."""
        self.depth += 1
        tensors, numbers = list(self.tensors), list(self.numbers)
        for _ in range(self.random.randint(least, 3)):
            self.statement()
        self.tensors, self.numbers = tensors, numbers
        self.depth -= 1

    def statement(self) -> None:
        """One statement."""
        simple, nested = _SIMPLE, _NESTED if self.depth < 4 else []
        choice: Callable[[FunctionWriter], None] = self.random.choice(simple * 2 + nested)
        choice(self)

    # -- simple statements -----------------------------------------------------------------------------------

    def assign(self) -> None:
        name = self.name()
        self.put(f"{name} = {self.tensor()}")
        self.tensors.append(name)

    def count_up(self) -> None:
        name = self.name("n")
        self.put(f"{name} = {self.number()}")
        self.numbers.append(name)

    def add(self) -> None:
        self.put(f"total = total {self.random.choice('+-')} {self.tensor()}")

    def note(self) -> None:
        self.put(f"log.append({self.random.choice([self.number(), repr(self.name('text'))])})")

    def store(self) -> None:
        self.put(f"table['k{self.random.randint(0, 2)}'] = {self.random.choice([self.tensor(), self.number()])}")

    def outside(self) -> None:
        self.put(f"total = total + outside(log, {self.tensor()})")

    def helper(self) -> None:
        name = self.name()
        self.put(f"{name} = helper({self.tensor()}, log, times={self.number()})")
        self.tensors.append(name)

    def item(self) -> None:
        self.put(f"total = total * 0.5 + ({self.tensor()}).sum().item() * 0.01")

    def write(self) -> None:
        name = self.name()
        self.put(f"{name} = ({self.tensor()}).clone()")
        self.put(f"{name}[{self.random.choice(['0', ':1', '-1:'])}] = {self.random.choice(['0.5', '1.0'])}")
        if self.chance(0.5):
            self.put(f"{name}.mul_(0.5)")
        self.tensors.append(name)

    def unpack(self) -> None:
        first, rest = self.name(), self.name()
        self.put(f"{first}, *{rest} = ({self.tensor()}, {self.number()}, {self.tensor()})")
        self.put(f"log.append(len({rest}))")
        self.tensors.append(first)

    def walrus(self) -> None:
        name = self.name("n")
        self.put(f"log.append(({name} := {self.number()}) + 1)")
        self.numbers.append(name)

    def delete(self) -> None:
        name = self.name()
        self.put(f"{name} = {self.tensor()}")
        self.put(f"total = total + {name}")
        self.put(f"del {name}")

    def text(self) -> None:
        self.put("log.append(f'{len(log)}:{tuple(x.shape)}:' + '-'.join(sorted(table)))")

    def leave(self) -> None:
        if self.loops and self.chance(0.6):
            self.put(f"if {self.test()}: {self.random.choice(['break', 'continue'])}")
        elif self.chance(0.3) and not self.generating:
            self.put(f"if len(log) > {self.random.randint(4, 12)}: return total, 'early', len(log)")
        else:
            self.put("pass")

    # -- iterators -------------------------------------------------------------------------------------------

    def shared_iterator(self) -> None:
        it, a = self.name("it"), self.name("n")
        sources = [
            "[1, 2, 3, 4]",
            "range(1, 5)",
            "(k * 2 for k in (1, 2, 3))",
            "{1: 2, 3: 4}.items()",
            "enumerate('abc')",
        ]
        self.put(f"{it} = iter({self.random.choice(sources)})")
        self.put(f"{a} = next({it})")
        if self.chance(0.6):
            self.outside()
        self.put(f"log.append([{a}, list(zip({it}, {it})), list({it})])")

    def mapped(self) -> None:
        it = self.name("it")
        source = self.random.choice(["log", "[3, 1, 2]", "sorted(table)"])
        function = self.random.choice(["lambda a: log.append('m') or a", "str", "lambda a: (a, len(log))"])
        self.put(f"{it} = {self.random.choice(['map', 'filter'])}({function}, list({source}))")
        self.put(f"log.append(next({it}, None))")
        if self.chance(0.5):
            self.outside()
        self.put(f"log.append(len(list({it})))")

    def comprehension(self) -> None:
        name = self.random.choice(self.tensors)
        self.put(f"total = total + sum([{name} * k for k in range({self.random.randint(1, 3)}) if k != 1])")

    def generator(self) -> None:
        g = self.name("g")
        self.put(f"def {g}(t, n):")
        self.put("    try:")
        self.put("        for k in range(n):")
        self.put("            got = yield t * k")
        self.put("            if got: log.append(('got', got))")
        self.put("    finally:")
        self.put(f"        log.append('{g} ends')")
        it = self.name("it")
        self.put(f"{it} = {g}({self.random.choice(self.tensors)}, {self.random.randint(1, 4)})")
        uses = [f"total = total + next({it}, total * 0)", f"list(zip((1,), {it}))", f"{it}.close()"]
        if self.chance(0.5):
            self.put(uses[0])
            if self.chance(0.5):
                self.outside()
            self.put(f"try: total = total + {it}.send({self.number()})")
            self.put("except StopIteration: log.append('stop')")
        for _ in range(self.random.randint(1, 2)):
            self.put(self.random.choice(uses))
        self.put(f"for part in {it}: total = total + part")

    # -- nested statements -----------------------------------------------------------------------------------

    def branch(self) -> None:
        self.put(f"if {self.test()}:")
        self.block()
        if self.chance(0.5):
            self.put("else:")
            self.block()

    @contextmanager
    def looping(self):
        self.loops += 1
        yield
        self.loops -= 1

    def loop(self) -> None:
        name = self.name("n")
        source = self.random.choice([f"range({self.random.randint(1, 3)})", "(2, 1)", "list(log)[:3]", "sorted(table)"])
        self.put(f"for {name} in {source}:")
        with self.looping():
            if source.startswith(("range", "(")):
                self.numbers.append(name)
            self.block()
            if name in self.numbers:
                self.numbers.remove(name)
        if self.chance(0.3):
            self.put("else:")
            self.block()

    def over_items(self) -> None:
        key, value = self.name("key"), self.name("value")
        self.put(f"for {key}, {value} in table.items():")
        self.put(f"    table[{key}] = {value}")
        self.put(f"    if {key} == 'k2': table['k1'] = 5")
        with self.looping():
            if self.chance(0.5):
                self.depth += 1
                self.outside()
                self.depth -= 1
            self.put(f"    log.append({key})")

    def while_loop(self) -> None:
        name = self.name("n")
        self.put(f"{name} = 0")
        self.put(f"while {name} < {self.random.randint(1, 3)}:")
        self.put(f"    {name} += 1")
        with self.looping():
            self.block()
        if self.chance(0.3):
            self.put("else:")
            self.block()

    def attempt(self) -> None:
        error = self.random.choice(["ValueError", "KeyError", "Custom"])
        self.put("try:")
        self.block()
        self.put(f"    if {self.test()}: raise {error}({self.number()})")
        for caught in self.random.sample(["(ValueError, KeyError)", "Custom", "Exception"], self.random.randint(1, 3)):
            name = self.name("error")
            self.put(f"except {caught} as {name}:" if self.chance(0.7) else f"except {caught}:")
            self.put("    log.append('caught')")
            self.block()
        if self.chance(0.3):
            self.put("else:")
            self.block()
        if self.chance(0.4):
            self.put("finally:")
            loops, self.loops = self.loops, 0  # leaving from here would hide errors
            self.block()
            self.loops = loops

    def manager(self) -> None:
        swallow = self.random.choice(["True", "False"])
        self.put(f"with Manager(log, {swallow}) as m:")
        self.block()
        if self.chance(0.5):
            self.put(f"    if {self.test()}: raise Custom('in with')")
        if self.chance(0.3):
            self.put(f"with scope(log), {self.random.choice(['lamina.no_grad()', 'Manager(log, True)'])}:")
            self.block()

    def closure(self) -> None:
        name = self.name("f")
        self.put(f"def {name}(v, k={self.number()}, *rest, **options):")
        self.put("    nonlocal total")
        self.put("    total = total + v * k")
        if self.chance(0.4):
            self.put("    total = total + outside(log, v)")
        self.put("    log.append((k, len(rest), sorted(options)))")
        self.put("    return total * 0.5")
        calls = ["{f}({t})", "{f}({t}, 2)", "{f}({t}, 1, 2, 3, a=1)", "{f}(*({t}, 2), **{{'b': 1}})"]
        for _ in range(self.random.randint(1, 2)):
            call = self.random.choice(calls).format(f=name, t=self.random.choice(self.tensors))
            self.put(f"total = total + {call}")

    def match(self) -> None:
        self.put(f"match ({self.number()}, len(log) % 2):")
        self.put("    case (1, _):")
        self.depth += 1
        self.block()
        self.put("case (n, 0) if n > 1:")
        self.put("    log.append(n)")
        self.put("case _:")
        self.block()
        self.depth -= 1

    def holder(self) -> None:
        name = self.name("h")
        self.put(f"{name} = Holder({self.tensor()})")
        self.put(f"{name}.count += {self.number()}")
        if self.chance(0.4):
            self.outside()
        self.put(f"total = total + {name}.double * {name}.count + {name}[0]")


_W = FunctionWriter
_SIMPLE = [
    _W.assign, _W.assign, _W.add, _W.add, _W.count_up, _W.note, _W.store, _W.outside, _W.helper, _W.item, _W.write,
    _W.unpack, _W.walrus, _W.delete, _W.text, _W.leave, _W.shared_iterator, _W.mapped, _W.comprehension, _W.generator,
    _W.holder,
]  # fmt: skip
_NESTED = [
    _W.branch, _W.loop, _W.loop, _W.over_items, _W.while_loop, _W.attempt, _W.attempt, _W.manager, _W.manager,
    _W.closure, _W.match,
]  # fmt: skip


def function_source(seed: int) -> str:
    """The source of a function ``program(x, y, log, table)``."""
    writer = FunctionWriter(seed)
    writer.put("total = x * 0.5")
    for _ in range(writer.random.randint(3, 7)):
        writer.statement()
    writer.put(f"return total, {writer.random.choice(writer.tensors)}, len(log)")
    return "\n".join(["def program(x, y, log, table):", *writer.lines])
