"""For tests in agents of frameworks: a data folder of their own, and no folder whose framework is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.environment import APART, PACKAGES, is_installed, variables
from tests.frameworks.node.driving import packages

HERE = Path(__file__).parent
UNMARKED = ("support",)
"""Folders whose tests need no framework."""
LONGEST_S = 300
"""Seconds for one test on a busy machine."""

missing = sorted(folder for folder, module in PACKAGES.items() if not is_installed(module))
apart = sorted(folder for folder, module in APART.items() if not is_installed(module))
if packages() is None:
    apart += ["node", "openclaw"]
collect_ignore = [*missing, *apart, *(["test_defaults.py"] if missing else [])]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents or item.path.relative_to(HERE).parts[0] in UNMARKED:
            continue
        item.add_marker(pytest.mark.framework)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONGEST_S))


@pytest.fixture(autouse=True, scope="session")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of the daemons of this process. Agents share one daemon, so it is one for all tests."""
    home = tmp_path_factory.mktemp("frameworks")
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("COMPACTD_HOME", str(home / "data"))
        for name in ("CONFIG", "DATA", "STATE", "CACHE"):
            changed.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
        for name, value in variables().items():
            changed.setenv(name, value)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
            changed.delenv(name, raising=False)
        yield home
