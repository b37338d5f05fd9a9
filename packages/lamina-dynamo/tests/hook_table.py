"""A callback for the tests of the frame hook."""

from __future__ import annotations

from lamina_dynamo import _core
from lamina_dynamo.guard import GuardSet
from lamina_dynamo.guard_program import compile_guards
from lamina_dynamo.replacement import flat_code


class Table:
    """A callback that replaces functions by others."""

    def __init__(self):
        self.replacements = {}
        self.seen = []
        self.owner = next(Table.owners)

    owners = iter(range(10_000, 20_000))

    def replace(self, old, new, guards=()):
        code = new if hasattr(new, "co_code") else new.__code__
        self.replacements[old.__code__] = (code, GuardSet(guards))

    def __call__(self, code, local, global_, builtins, closure, misses):
        self.seen.append((code.co_name, local, closure, misses))
        found = self.replacements.get(code)
        if found is None:
            _core.skip(code, self.owner)
            return
        new, guards = found
        _core.add_entry(code, self.owner, compile_guards(guards, code), new, flat_code(new), guards)

    def run(self, function, *args, **kwargs):
        return _core.Switch(function, self, self.owner)(*args, **kwargs)

    def names(self):
        return [s[0] for s in self.seen]
