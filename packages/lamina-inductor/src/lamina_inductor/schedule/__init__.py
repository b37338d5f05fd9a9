"""From loop IR to kernels: which values share a kernel (``groups``), and how a kernel's loops look."""

from __future__ import annotations
