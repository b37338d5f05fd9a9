"""Programs as users of PyTorch write them (``programs/``), eager and compiled, against numbers that PyTorch gives.

Each program's ``run(compile)`` is a small script: it makes a model with weights by formula, compiles what users
compile (a step, a model, a function), trains or evaluates, and returns what came out. ``expected.json`` holds the
values of the same scripts under PyTorch.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import lamina

PROGRAMS = Path(__file__).resolve().parent / "programs"
sys.path.insert(0, str(PROGRAMS))
EXPECTED = json.loads((PROGRAMS / "expected.json").read_text())


@dataclass(frozen=True)
class Case:
    """Bounds for one program: graphs and breaks of the compiled run, and how far values may be from PyTorch's."""

    graphs: int
    breaks: int = 0
    tolerance: float = 3e-4


CASES = {
    "accumulate_and_resume": Case(10),
    "autocast_training": Case(2, 0, 0.005),
    "bert": Case(3),
    "bfloat16_training": Case(2, 0, 0.003),
    "contrastive": Case(14, 12),
    "custom_function": Case(2),
    "data_loader": Case(5),
    "diffusion": Case(5),
    "ema_and_freezing": Case(3),
    "gan": Case(3),
    "gpt_cache": Case(5),
    "graph_network": Case(4, 4),
    "hooks_and_checkpoint": Case(10, 9),  # a batch of one has graphs of its own
    "legacy_style": Case(1),
    "llama": Case(4),
    "lstm_lm": Case(2),
    "mixture_of_experts": Case(12, 11),
    "module_surgery": Case(3),
    "physics_informed": Case(3),
    "policy_gradient": Case(2),
    "postprocess": Case(18, 11),
    "resnet": Case(3),
    "seq2seq": Case(2),
    "siamese": Case(1),
    "transformer_translation": Case(3),
    "unet": Case(1),
    "vae": Case(3),
    "vit": Case(2),
}


def flat(value: Any) -> list[Any]:
    if isinstance(value, lamina.Tensor):
        return value.detach().flatten().tolist()
    if isinstance(value, tuple | list):
        return [item for part in value for item in flat(part)]
    return [value]


def assert_close(have: list[Any], want: list[Any], tolerance: float, where: str) -> None:
    assert len(have) == len(want), where
    for k, (a, b) in enumerate(zip(have, want, strict=True)):
        if isinstance(a, float) and isinstance(b, float) and math.isfinite(b):
            assert abs(a - b) <= tolerance * (1 + abs(b)), f"{where}[{k}]: {a} and {b}"
        else:
            assert a == b, f"{where}[{k}]: {a} and {b}"


def check(name: str, compile: Callable[..., Any]) -> None:
    results = importlib.import_module(name).run(compile)
    expected = EXPECTED[name]
    assert len(results) == len(expected)
    for k, (result, numbers) in enumerate(zip(results, expected, strict=True)):
        assert_close(flat(result), numbers, CASES[name].tolerance, f"{name}, result {k}")


def test_every_program_has_a_case() -> None:
    assert {path.stem for path in PROGRAMS.glob("*.py")} - {"formula"} == set(CASES) == set(EXPECTED)


@pytest.mark.parametrize("name", CASES)
def test_eager(name: str) -> None:
    check(name, lambda function: function)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings(
    "error::lamina_dynamo.CaptureWarning", "ignore:(?s).*recompile_limit:lamina_dynamo.CaptureWarning"
)
def test_compiled(name: str) -> None:
    check(name, lamina.compile)
    told = lamina.compiler.summary()
    assert told.breaks <= CASES[name].breaks, told.break_reasons
    assert told.graphs <= CASES[name].graphs
