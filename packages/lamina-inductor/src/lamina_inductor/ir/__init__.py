"""The representations of inductor: loop IR (``loops``), kernel IR (``kernel``) and program IR (``program``)."""

from __future__ import annotations
