"""The frameworks are installed in the versions of the lock file."""

from __future__ import annotations

import os
import re
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import pytest

from tests.editors.agents import DEMANDED
from tests.frameworks.environment import LOCK, PACKAGES, is_installed
from tests.frameworks.node.driving import packages
from tests.frameworks.openclaw import gateway as openclaw

PINNED = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", LOCK.read_text("utf-8"), re.MULTILINE))
NAMES = (
    "langchain",
    "langgraph",
    "deepagents",
    "openai-agents",
    "pydantic-ai-slim",
    "claude-agent-sdk",
    "google-adk",
    "litellm",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_framework_is_installed_in_the_pinned_version(name: str) -> None:
    try:
        found = version(name)
    except PackageNotFoundError:
        leave_out(f"{name} is not installed: `make test-frameworks` installs it if PyPI can be reached")

    assert found == PINNED[name]


@pytest.mark.parametrize("folder", PACKAGES)
def test_a_folder_of_tests_has_a_package(folder: str) -> None:
    if not is_installed(PACKAGES[folder]):
        leave_out(f"{PACKAGES[folder]} is not installed, so the tests in {folder} are left out")


def test_the_packages_for_node_are_installed() -> None:
    if packages() is None:
        leave_out("the packages for Node are not installed, so the tests in node and openclaw are left out")


def test_openclaw_is_installed() -> None:
    if openclaw.packages() is None:
        leave_out(
            "OpenClaw is not installed, so the tests of its gateway are left out: `make nightly` installs it"
        )


def leave_out(reason: str) -> NoReturn:
    """Skip the test, or fail if everything must be installed."""
    if os.environ.get(DEMANDED) == "all":
        pytest.fail(reason)
    pytest.skip(reason)
