"""Builds the C extension; everything else is in pyproject.toml."""

from __future__ import annotations

import os

from pybind11.setup_helpers import Pybind11Extension, build_ext
from setuptools import setup

import lamina_fx


class BuildMixed(build_ext):
    """One extension from C and C++ files: the C++ standard must not reach the C compiler."""

    def build_extensions(self) -> None:
        """Filter the arguments of C files, then build."""
        compile_one = self.compiler._compile

        def compile_filtered(obj, src, ext, cc_args, extra, pp_opts):  # type: ignore[no-untyped-def]
            if ext == ".c":
                extra = [a for a in extra if not a.startswith(("-std=c++", "-fvisibility-inlines"))]
            return compile_one(obj, src, ext, cc_args, extra, pp_opts)

        self.compiler._compile = compile_filtered
        super().build_extensions()


CSRC = os.path.join("src", "lamina_dynamo", "csrc")
SOURCES = (
    "_frame.c",
    "arrays.cpp",
    "shapes.cpp",
    "guard_program.cpp",
    "guards.cpp",
    "hook.cpp",
    "objects.cpp",
    "_core.cpp",
)

setup(
    ext_modules=[
        Pybind11Extension(
            "lamina_dynamo._core",
            [os.path.join(CSRC, name) for name in SOURCES],
            cxx_std=17,
            include_dirs=[CSRC, lamina_fx.get_include()],
            depends=[os.path.join(CSRC, name) for name in ("_frame.h", "guards.h", "hook.h")],
            extra_compile_args=["-O2", "-fvisibility=hidden"],
        )
    ],
    cmdclass={"build_ext": BuildMixed},
)
