"""Helpers around parameters: clipping, flattening, sequences."""

from __future__ import annotations

from . import parametrizations, parametrize, rnn
from .clip import clip_grad_norm_, clip_grad_value_, get_total_norm
from .flat import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "rnn",
    "vector_to_parameters",
]
