"""Plans: what dispatch and autograd need to know of an operator, worked out once."""

from __future__ import annotations

from typing import Any

from lamina_prims import Operator

__all__ = ["Plan", "plan_of"]

_PLANS: dict[Operator, Plan] = {}


class Plan:
    """Facts of one operator.

    Attributes:
        kinds: for each parameter 0 (no tensor), 1 (a tensor) or 2 (a list of tensors).
        saved: for each parameter whether the gradient rule asks for it.
        rule_arguments: for each parameter of the rule ``"ct"``, ``"out"``, ``"needs"``, the index of an input, or
            ``~index`` for the spec of an input.
        spec_wanted: for each parameter whether the rule asks for its spec.
        crossed: the gradient of each of two operands needs the other one only.
        runs_body: the operator is a composite that is computed by running its body on tensors.
    """

    __slots__ = (
        "binders", "crossed", "defaults", "differentiable", "kinds", "name", "op", "outputs", "rule_arguments",
        "runs_body", "saved", "saves_out", "spec_wanted", "wants_specs",
    )  # fmt: skip

    def __init__(self, op: Operator) -> None:
        parameters = op.schema.parameters
        index = {p.name: i for i, p in enumerate(parameters)}
        self.op = op
        self.kinds = tuple({"one": 1, "list": 2}.get(p.tensor or "", 0) for p in parameters)
        self.defaults = tuple(p.default for p in parameters)
        self.saved = tuple(k == 0 or p.name in op.vjp_saves for k, p in zip(self.kinds, parameters))
        self.rule_arguments = tuple(_rule_argument(op, name, index) for name in op.vjp_saves)
        self.crossed = op.id == "mul"
        self.spec_wanted = tuple(f"{p.name}_spec" in op.vjp_saves for p in parameters)
        self.wants_specs = True in self.spec_wanted
        self.saves_out = "out" in op.vjp_saves
        self.differentiable = op.vjp_rule is not None
        self.outputs = op.schema.outputs
        self.runs_body = not op.is_primitive and (op.reference is None or op.alias is not False)
        self.name = "".join(part.capitalize() for part in op.id.replace(".", "_").split("_")) + "Backward"
        self.binders: dict[tuple[int, tuple[str, ...]], tuple[int, ...]] = {}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters."""
        key = (len(args), tuple(kwargs))
        sources = self.binders.get(key)
        if sources is None:
            self.op.schema.bind(args, kwargs)  # raises what the user should see
            names = [p.name for p in self.op.schema.parameters]
            places = {name: len(args) + i for i, name in enumerate(kwargs)}
            sources = tuple(i if i < len(args) else places.get(name, -1 - i) for i, name in enumerate(names))
            self.binders[key] = sources
        given = (*args, *kwargs.values())
        defaults = self.defaults
        return tuple([given[s] if s >= 0 else defaults[-1 - s] for s in sources])


def plan_of(op: Operator) -> Plan:
    """The plan of an operator."""
    plan = _PLANS.get(op)
    if plan is None:
        plan = _PLANS[op] = Plan(op)
    return plan


def _rule_argument(op: Operator, name: str, index: dict[str, int]) -> Any:
    if name in ("ct", "out", "needs"):
        return name
    if name not in index and name.endswith("_spec") and name[:-5] in index:
        return ~index[name[:-5]]
    if name not in index:
        raise TypeError(f"the vjp of {op.id} asks for {name!r}, which is no parameter of {op.schema}")
    return index[name]
