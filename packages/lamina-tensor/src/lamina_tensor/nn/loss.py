"""Losses as modules."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from .module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
    "TripletMarginLoss",
]  # fmt: skip


class _Loss(Module):
    """Keeps the options as attributes and passes them to the function; tensors (weights) are buffers."""

    _function = ""
    _defaults: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self._defaults)
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        unknown = [name for name in given if name not in self._defaults]
        if unknown or len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}; got {unknown or args}")
        if given.get("reduction", "mean") not in ("none", "mean", "sum", "batchmean"):
            raise ValueError(f"{given['reduction']!r} is not a valid value for reduction")
        for name, default in self._defaults.items():
            value = given.get(name, default)
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Inputs and targets as the function of this name takes them."""
        return getattr(F, self._function)(*inputs, **{name: getattr(self, name) for name in self._defaults})


def _loss(name: str, function: str, **defaults: Any) -> type[_Loss]:
    doc = f"``nn.functional.{function}`` as a module."
    defaults["reduction"] = defaults.get("reduction", "mean")
    body = {"_function": function, "_defaults": defaults, "__doc__": doc, "__module__": __name__}
    return type(name, (_Loss,), body)


L1Loss = _loss("L1Loss", "l1_loss")
MSELoss = _loss("MSELoss", "mse_loss")
SmoothL1Loss = _loss("SmoothL1Loss", "smooth_l1_loss", reduction="mean", beta=1.0)
HuberLoss = _loss("HuberLoss", "huber_loss", reduction="mean", delta=1.0)
NLLLoss = _loss("NLLLoss", "nll_loss", weight=None, ignore_index=-100)
CrossEntropyLoss = _loss(
    "CrossEntropyLoss", "cross_entropy", weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
)
BCELoss = _loss("BCELoss", "binary_cross_entropy", weight=None)
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss", "binary_cross_entropy_with_logits", weight=None, reduction="mean", pos_weight=None
)
KLDivLoss = _loss("KLDivLoss", "kl_div", reduction="mean", log_target=False)
PoissonNLLLoss = _loss("PoissonNLLLoss", "poisson_nll_loss", log_input=True, full=False, eps=1e-8)
GaussianNLLLoss = _loss("GaussianNLLLoss", "gaussian_nll_loss", full=False, eps=1e-6)
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", "cosine_embedding_loss", margin=0.0)
MarginRankingLoss = _loss("MarginRankingLoss", "margin_ranking_loss", margin=0.0)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", "hinge_embedding_loss", margin=1.0)
SoftMarginLoss = _loss("SoftMarginLoss", "soft_margin_loss")
MultiMarginLoss = _loss("MultiMarginLoss", "multi_margin_loss", p=1, margin=1.0, weight=None)
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", "multilabel_margin_loss")
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", weight=None)
CTCLoss = _loss("CTCLoss", "ctc_loss", blank=0, reduction="mean", zero_infinity=False)
TripletMarginLoss = _loss("TripletMarginLoss", "triplet_margin_loss", margin=1.0, p=2.0, eps=1e-6, swap=False)
