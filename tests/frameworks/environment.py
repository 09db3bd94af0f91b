"""The environment of the frameworks: outside the tree, with pinned versions. Used by setup.sh too, so it
needs only Python.

    python tests/frameworks/environment.py   prints its folder, whether it exists or not

compactd is not installed in it. It is imported from this checkout, so that all checkouts can use one
environment."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LOCK = HERE / "requirements.lock"
OPTIONS = ("-rs", "-m", "framework", str(HERE.relative_to(ROOT)))
INSTALLED = ".installed"
"""The file that setup.sh writes last."""
PACKAGES = {
    "langchain": "langchain",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "claude_agent_sdk": "claude_agent_sdk",
    "google_adk": "google.adk",
    "litellm": "litellm",
}
"""The folder of a framework's tests, and of its adapter -> the module that its package installs."""
APART = {"hermes": "run_agent"}
"""The same for frameworks with an environment of their own, which the folder's setup.sh installs."""


def folder() -> Path:
    """Return the folder of the environment for this lock file and this version of Python."""
    key = hashlib.sha256(LOCK.read_bytes() + repr(sys.version_info[:3]).encode()).hexdigest()[:12]
    cache = os.environ.get("COMPACTD_TEST_CACHE") or Path.home() / ".cache" / "compactd-tests"
    return Path(cache) / f"frameworks-{key}"


def python() -> Path | None:
    """Return the environment's Python; None if setup.sh has not installed it."""
    place = folder()
    return place / "bin" / "python" if (place / INSTALLED).exists() else None


def variables(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return environment variables with which a program imports compactd and the tests from this checkout,
    and sends nothing to anybody: no traces, and requests to loopback pass no proxy. Programs next to this
    Python, such as `node`, are found. Compiled modules are
    kept, because nothing was compiled when the packages were installed."""
    return {
        **given,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "server", ROOT, ROOT / "conformance"))),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), given.get("PATH", os.defpath))),
        "PYTHONDONTWRITEBYTECODE": "",
        "NO_PROXY": "127.0.0.1,localhost",
        "LANGSMITH_TRACING": "false",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def is_installed(module: str) -> bool:
    """Return whether this Python has a module. It may be in a package, which is then imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def command(*arguments: str) -> list[str]:
    """Return the command that runs the tests of this folder with the frameworks' Python, in the repository
    and with `variables`. If it is not installed, this Python runs the one module that says so."""
    return [str(python() or sys.executable), "-m", "pytest", *OPTIONS, *arguments]


if __name__ == "__main__":
    print(folder())
