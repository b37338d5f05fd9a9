"""tools/locking.py: of two processes, one waits for the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import locking

WORKER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from locking import locked
folder = Path(sys.argv[2])
with locked(folder):
    seen = (folder / "made").exists()
    print("found" if seen else "made")
    time.sleep(0.2)
    (folder / "made").touch()
"""


def test_one_makes_and_the_others_find(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(Path(locking.__file__).parent), str(tmp_path / "shared")]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = sorted(worker.communicate(timeout=60)[0].strip() for worker in workers)
    assert said == ["found", "found", "made"]
