"""A process of its own on the stub device: ``python stub_process.py library code`` (code sees ``device``, ``lamina``).

``run_process`` starts one from a test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["run_process"]


def run_process(library: str, cache: Path, code: str, **environment: str) -> subprocess.Popen[str]:
    """Start one with ``cache`` as the folder of artifacts; its output is one text."""
    settings = {"LAMINA_LIBCUDA": library, "LAMINA_LIBCUBLAS": library, "LAMINA_CACHE_DIR": str(cache)}
    return subprocess.Popen(
        [sys.executable, __file__, library, code],
        env=os.environ | settings | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def main(library: str, code: str) -> None:
    """Run the code on the device."""
    from stub_device import StubDevice

    import lamina
    from lamina_tensor import cuda
    from lamina_tensor.cuda.stub_provider import StubProvider

    device = StubDevice.install(Path(library), setattr)
    cuda.use_provider(StubProvider())
    exec(code, {"device": device, "lamina": lamina})


if __name__ == "__main__":
    main(*sys.argv[1:])
