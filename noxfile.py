"""Every check of the project, one session each: ``nox -l`` lists them; tools/dev.py test runs the default ones.

``unit`` installs one package with its declared siblings from wheels, in an environment of its own
(tools/environments.py). The other sessions use the environment that nox itself runs in, which tools/dev.py made.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tools"))

from dev import DEFAULT_SESSIONS, DISTRIBUTIONS  # noqa: E402
from environments import TEST_REQUIREMENTS, isolated  # noqa: E402
from pythons import PLACES, TESTS, VERSIONS, environment, find_python  # noqa: E402
from wheelhouse import build  # noqa: E402

nox.options.sessions = list(DEFAULT_SESSIONS)
nox.options.reuse_existing_virtualenvs = True

SOURCES = ("packages", "tools", "tests_integration", "noxfile.py")
NEEDS_RELEASE = "has no meaning before the first release: tools/releases.toml lists none"


def checking() -> dict[str, str]:
    """Checks are on while testing."""
    return {"LAMINA_CHECK": "1"}


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Style: ruff's rules and formatting."""
    session.run("ruff", "check", *SOURCES)
    session.run("ruff", "format", "--check", *SOURCES)


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Types: pyright, strict for the packages that others build on."""
    session.run("pyright", "--project", "pyrightconfig.json")


@nox.session(venv_backend="none")
def layers(session: nox.Session) -> None:
    """Imports follow the layer contract."""
    session.run("lint-imports")


@nox.session(venv_backend="none")
@nox.parametrize("dist", DISTRIBUTIONS, ids=DISTRIBUTIONS)
def unit(session: nox.Session, dist: str) -> None:
    """One package's tests, with nothing but its declared siblings (and the test kit) installed."""
    python = isolated(dist, () if dist == "lamina-fx" else ("lamina-testing",))
    command = [str(python), "-P", "-m", "pytest", "-q", f"packages/{dist}/tests", *session.posargs]
    session.run(*command, external=True, env=checking())


@nox.session(venv_backend="none")
def docs_test(session: nox.Session) -> None:
    """Every example in the documentation and the docstrings runs."""
    session.run("pytest", "-q", "tools/tests", env=checking())
    session.run("pytest", "-q", "--doctest-glob=*.md", "docs", "README.md", env=checking())
    sources = [f"packages/{dist}/src" for dist in DISTRIBUTIONS]
    sources.append("--ignore-glob=*/cupy_*.py")  # imports CuPy, which is not here
    session.run("pytest", "-q", "--doctest-modules", "--import-mode=importlib", *sources, env=checking())


@nox.session(venv_backend="none")
@nox.parametrize(
    "siblings", ["head", "floor", "released", "regression"], ids=["head", "floor", "released", "regression"]
)
def integration(session: nox.Session, siblings: str) -> None:
    """Whole-stack tests, with the siblings of this tree or of a release."""
    if siblings != "head":
        session.skip(f"integration({siblings}) {NEEDS_RELEASE}")
    session.run("pytest", "-q", "tests_integration", *session.posargs, env=checking())


@nox.session(venv_backend="none")
@nox.parametrize("version", VERSIONS, ids=VERSIONS)
def pythons(session: nox.Session, version: str) -> None:
    """What depends on the interpreter, under each CPython that is found, in an environment of its own.

    All tests of lamina-dynamo, lamina-fx, lamina-tensor, lamina-aot and lamina; of lamina-inductor those of the C++
    launcher and of robustness; of tests_integration models, training, functions, what capture takes, random functions
    and the programs of users. Left out: lamina-prims and the rest of lamina-inductor (Python without the
    interpreter's internals), lamina-testing, the conformance suite, and the rest of tests_integration (`nox -s
    integration` runs all of them under the Python of .venv). A group that fails does not stop the others. Paths
    behind `--` replace the chosen ones.
    """
    interpreter = find_python(version)
    if interpreter is None:
        session.skip(f"CPython {version} was not found ({PLACES}): nothing was tested with it")
    session.log(f"CPython {version}: {interpreter}")
    python = environment(version, interpreter)
    cache = {"LAMINA_CACHE_DIR": str(python.parents[1] / "cache")}
    chosen = (tuple(session.posargs),) if session.posargs else TESTS
    failed = []
    for tests in chosen:
        command = [str(python), "-P", "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *tests]
        try:
            session.run(*command, external=True, env={**checking(), **cache})
        except CommandFailed:  # the rest runs all the same: one run shows all that this version breaks
            failed.append(" ".join(tests))
    if failed:
        session.error(f"CPython {version} fails: {'; '.join(failed)}")


@nox.session
def triton(session: nox.Session) -> None:
    """Triton kernels without a GPU: they compile for two targets, and compute the right thing in the interpreter."""
    folder = build()
    wanted = ("lamina-inductor[triton]", "lamina-testing", "lamina", *TEST_REQUIREMENTS)
    session.install("-q", "--upgrade", "--find-links", str(folder), *wanted)
    session.install("-q", "--no-deps", "--force-reinstall", "--find-links", str(folder), *DISTRIBUTIONS)
    tests = sorted(map(str, Path("packages/lamina-inductor/tests").glob("test_triton_*.py")))
    tests.append("tests_integration/test_interpreted_programs.py")
    session.run("pytest", "-q", *tests, *session.posargs, env=checking())


@nox.session(venv_backend="none")
@nox.parametrize("dist", DISTRIBUTIONS, ids=DISTRIBUTIONS)
def wheel(session: nox.Session, dist: str) -> None:
    """Build one package's wheel into wheelhouse/."""
    build((dist,))


@nox.session(venv_backend="none")
def api(session: nox.Session) -> None:
    """The public API against the last release."""
    session.skip(f"api {NEEDS_RELEASE}")


@nox.session(venv_backend="none")
def interfaces(session: nox.Session) -> None:
    """The dumped interfaces are those of the code (``-- --update`` writes them)."""
    session.run("python", "tools/interfaces.py", *(session.posargs or ["--check"]))


@nox.session(venv_backend="none")
def deps(session: nox.Session) -> None:
    """Each package imports only what it declares."""
    session.run("python", "tools/dependencies.py")


@nox.session(venv_backend="none")
def conformance(session: nox.Session) -> None:
    """The conformance suite on our own backends, with every sample."""
    session.run("pytest", "-q", "tests_integration/conformance", "--all-samples", *session.posargs, env=checking())


@nox.session(venv_backend="none")
def sanitize(session: nox.Session) -> None:
    """The C and C++ extensions under the address and undefined-behaviour sanitizers (not part of CI: minutes)."""
    session.run("python", "tools/sanitize.py", *session.posargs)


@nox.session(venv_backend="none")
def goldens(session: nox.Session) -> None:
    """Rewrite the golden files (``CI`` never does)."""
    if os.environ.get("CI"):
        session.error("golden files are not rewritten in CI")
    session.run("pytest", "-q", "packages/lamina-inductor/tests", "-k", "golden", "--update-golden")


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Time Lamina beside NumPy, PyTorch and JAX, each in an environment of its own; ``-- --device cuda``: on a GPU."""
    options = list(session.posargs)
    script = "tools/bench/run.py"
    if options[:2] == ["--device", "cuda"]:
        script, options = "tools/gpu/bench.py", options[2:]
    session.run("python", script, *options)


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """Generate the operator tables of docs/."""
    session.run("python", "tools/operator_tables.py", *session.posargs)


@nox.session(venv_backend="none")
def release(session: nox.Session) -> None:
    """Cut a release of one package."""
    session.skip("release: no package has been released yet; tools/releases.toml says how the first one is recorded")
