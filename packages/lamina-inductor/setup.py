"""Builds the launcher of generated programs; everything else is in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import numpy
from setuptools import Extension, setup

HERE = Path(__file__).parent.resolve()
SOURCES = (
    *("module", "program", "plan", "inputs", "workspace", "pool"),
    *("gemm", "convolution", "microkernel", "attention"),
)
CUDA_SOURCES = (
    *("module", "program", "plan", "inputs", "steps", "workspace", "errors", "graph", "timing", "driver", "blas"),
)

FLAGS = [
    "-std=c++17",
    "-O3",
    "-fopenmp-simd",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-missing-field-initializers",
]


def tensor_abi_folder() -> str:
    """Where ``lamina/tensor_abi.h`` is: in the installed lamina-fx, or beside this package in the repository."""
    try:
        import lamina_fx
    except ImportError:
        return str(HERE.parent / "lamina-fx" / "src" / "lamina_fx" / "include")
    return str(Path(lamina_fx.__file__).parent / "include")


setup(
    ext_modules=[
        Extension(
            "lamina_inductor.host._launcher",
            sources=[f"src/lamina_inductor/host/{name}.cpp" for name in SOURCES],
            include_dirs=[tensor_abi_folder(), numpy.get_include()],
            depends=[
                "src/lamina_inductor/host/launcher.h",
                "src/lamina_inductor/host/host_abi.h",
                "src/lamina_inductor/host/steps.h",
                "src/lamina_inductor/host/plan.h",
                "src/lamina_inductor/host/attention.h",
                "src/lamina_inductor/host/attention_vectors.h",
                "src/lamina_inductor/host/attention_tiles.h",
                "src/lamina_inductor/host/attention_forward.h",
                "src/lamina_inductor/host/attention_backward.h",
                "src/lamina_inductor/host/attention_level_end.h",
            ],
            extra_compile_args=FLAGS,
            language="c++",
        ),
        Extension(
            "lamina_inductor.host._cuda",
            sources=[f"src/lamina_inductor/host/cuda_{name}.cpp" for name in CUDA_SOURCES],
            include_dirs=[tensor_abi_folder()],
            depends=[f"src/lamina_inductor/host/cuda_{name}.h" for name in ("driver", "plan", "launcher")],
            extra_compile_args=FLAGS,
            language="c++",
        ),
    ]
)
