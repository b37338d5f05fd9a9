"""The spelling module of the running CPython."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from . import py314 as dialect
elif sys.version_info >= (3, 13):
    from . import py313 as dialect
elif sys.version_info >= (3, 12):
    from . import py312 as dialect
else:
    from . import py311 as dialect

__all__ = ["dialect"]
