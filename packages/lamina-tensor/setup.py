"""Builds the extension lamina_tensor._C; everything else about the package is in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import numpy
from setuptools import Extension, setup

import lamina_fx

SOURCES = Path("src/lamina_tensor/csrc")
FLAGS = ["-std=c11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra"]

setup(
    ext_modules=[
        Extension(
            "lamina_tensor._C",
            sources=sorted(str(path) for path in SOURCES.glob("*.c")),
            depends=[str(SOURCES / "tensor.h")],
            include_dirs=[numpy.get_include(), lamina_fx.get_include()],
            extra_compile_args=FLAGS,
        ),
        Extension("lamina_tensor._kernels", sources=[str(SOURCES / "kernels" / "kernels.c")], extra_compile_args=FLAGS),
    ]
)
