"""For tests: ``assert_close``, ``gradcheck``, ``gradgradcheck``, ``make_tensor``."""

from __future__ import annotations

from .comparison import assert_allclose, assert_close, make_tensor
from .gradients import GradcheckError, gradcheck, gradgradcheck

__all__ = ["GradcheckError", "assert_allclose", "assert_close", "gradcheck", "gradgradcheck", "make_tensor"]
