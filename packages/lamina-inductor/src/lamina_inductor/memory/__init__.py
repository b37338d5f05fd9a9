"""Where values live: liveness and the plan of the one workspace."""

from __future__ import annotations
