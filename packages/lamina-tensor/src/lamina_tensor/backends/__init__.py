"""Switches that programs set for other hardware. They are kept and read back, and change nothing here.

>>> cudnn.benchmark = True
>>> cudnn.is_available(), cuda.matmul.allow_tf32, mps.is_available()
(False, False, False)
"""

from __future__ import annotations

from . import cuda, cudnn, mkldnn, mps

__all__ = ["cuda", "cudnn", "mkldnn", "mps"]
