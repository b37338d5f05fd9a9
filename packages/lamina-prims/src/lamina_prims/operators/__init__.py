"""One module per family of operators. Importing this package declares all of them."""

from __future__ import annotations

import pkgutil
from importlib import import_module

FAMILIES: tuple[str, ...] = tuple(sorted(info.name for info in pkgutil.iter_modules(__path__)))
"""The modules, one a family; a new one is found by being there."""

for _family in FAMILIES:
    import_module(f"{__name__}.{_family}")
