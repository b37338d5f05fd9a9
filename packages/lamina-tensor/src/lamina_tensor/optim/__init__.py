"""Optimizers and learning-rate schedules."""

from __future__ import annotations

from . import lr_scheduler
from .adam import Adam, AdamW
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .others import Adadelta, Adagrad, RMSprop
from .per_weight import ASGD, Rprop
from .sgd import SGD
from .variants import Adamax, NAdam, RAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop",
    "Rprop", "lr_scheduler",
]  # fmt: skip
