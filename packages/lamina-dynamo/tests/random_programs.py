"""Random Python functions over arrays: statements are drawn, so that the same seed gives the same source.

>>> print(source_of(0).splitlines()[0])
def program(x, y, items, table):
"""

from __future__ import annotations

import random

__all__ = ["source_of"]

_UNARY = ["np.sin({})", "-{}", "np.abs({})", "{}.sum()", "({} * 0.5)", "np.tanh({})", "{} + {}.mean()"]
_BINARY = ["{} + {}", "{} * {}", "{} - {}", "np.maximum({}, {})", "({} + 1) / (abs({}) + 2)"]


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.arrays = ["x", "y"]
        self.ints = ["2", "3"]
        self.in_loop = False

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def array(self) -> str:
        pick = self.random.choice
        form = pick(_UNARY + _BINARY)
        return form.format(*[pick(self.arrays) for _ in range(form.count("{}"))])

    def statement(self) -> None:
        kinds = ["assign"] * 4 + [
            "loop", "branch", "append", "table", "call", "comprehension", "try", "with", "augment", "generator",
            "unpack",
            "while", "string", "closure", "outside", "object", "early",
        ]  # fmt: skip
        getattr(self, self.random.choice(kinds))()

    def block(self) -> None:
        """Some statements one level deeper; names made inside stay usable only if they are made for sure."""
        self.depth += 1
        arrays, ints = list(self.arrays), list(self.ints)
        for _ in range(self.random.randint(1, 3)):
            if self.depth < 4:
                self.statement()
            else:
                self.assign()
        self.arrays, self.ints = arrays, ints
        self.depth -= 1

    def assign(self) -> None:
        name = self.name()
        self.line(f"{name} = {self.array()}")
        self.arrays.append(name)

    def augment(self) -> None:
        self.line(f"total = total {self.random.choice('+-')} {self.array()}")

    def loop(self) -> None:
        name = self.name()
        self.line(f"for {name} in range({self.random.randint(1, 3)}):")
        self.line(f"    total = total + {name}")
        if self.random.random() < 0.3:
            self.line(f"    if {name} == 1: {self.random.choice(['continue', 'break'])}")
        self.block()

    def branch(self) -> None:
        self.line(f"if len(items) > {self.random.randint(0, 4)} and x.ndim == 1:")
        self.block()
        if self.random.random() < 0.5:
            self.line("else:")
            self.block()

    def append(self) -> None:
        self.line(f"items.append({self.array()})")
        if self.random.random() < 0.3:
            self.line(f"items[0] = {self.random.choice(self.ints)}")

    def table(self) -> None:
        self.line(f"table['k{self.random.randint(0, 2)}'] = {self.array()}")
        if self.random.random() < 0.3:
            self.line("table.pop('k0', None)")

    def call(self) -> None:
        name = self.name()
        self.line(f"{name} = helper({self.array()}, {self.random.choice(self.ints)}, scale={self.random.random():.2f})")
        self.arrays.append(name)

    def comprehension(self) -> None:
        name = self.name()
        self.line(f"{name} = sum([{self.random.choice(self.arrays)} * i for i in range({self.random.randint(1, 3)})])")
        self.line(f"total = total + {name}")

    def attempt(self) -> None:
        self.line("try:")
        self.block()
        self.line(f"    if len(items) > {self.random.randint(0, 5)}: raise ValueError(len(items))")
        self.line("except ValueError as error:")
        self.line("    total = total + error.args[0]")
        if self.random.random() < 0.4:
            self.line("finally:")
            self.line("    items.append('finally')")

    def manager(self) -> None:
        self.line("with Manager(items) as m:")
        self.block()
        self.line("    m.items.append(len(m.items))")

    def generator(self) -> None:
        self.line(f"for part in pieces({self.random.choice(self.arrays)}, {self.random.randint(1, 3)}):")
        self.line("    total = total + part")

    def unpack(self) -> None:
        a, b = self.name(), self.name()
        self.line(f"{a}, *_, {b} = [{self.array()}, 1, 2, {self.array()}]")
        self.arrays += [a, b]

    def while_(self) -> None:
        name = self.name()
        self.line(f"{name} = 0")
        self.line(f"while {name} < {self.random.randint(1, 3)}:")
        self.line(f"    {name} += 1")
        self.line(f"    total = total * {name}")

    def string(self) -> None:
        self.line("table['text'] = f'{len(items)}:{x.shape}' + '-'.join(sorted(table))")

    def closure(self) -> None:
        name = self.name()
        self.line(f"def {name}(v, k={self.random.choice(self.ints)}):")
        self.line("    nonlocal total")
        self.line("    total = total + v * k")
        self.line("    return total")
        self.line(f"items.append({name}({self.random.choice(self.arrays)}))")

    def outside(self) -> None:
        self.line(f"outside(items, {self.random.choice(self.arrays)})")

    def object(self) -> None:
        name = self.name()
        self.line(f"{name} = Holder({self.array()})")
        self.line(f"{name}.count += 1")
        self.line(f"total = total + {name}.double() * {name}.count")

    def early(self) -> None:
        self.line(f"if len(items) > {self.random.randint(6, 12)}: return total, 'early'")


for _name, _method in {"try": _Writer.attempt, "with": _Writer.manager, "while": _Writer.while_}.items():
    setattr(_Writer, _name, _method)


def source_of(seed: int) -> str:
    """The source of a function ``program(x, y, items, table)``."""
    writer = _Writer(seed)
    writer.line("total = x * 0")
    for _ in range(writer.random.randint(3, 8)):
        writer.statement()
    writer.line(f"return total, {writer.random.choice(writer.arrays)}, [len(items), sorted(table)]")
    return "\n".join(["def program(x, y, items, table):", *writer.lines])
