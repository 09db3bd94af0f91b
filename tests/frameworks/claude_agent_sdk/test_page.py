"""What docs/claude-agent-sdk.md and the example say is true."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import claude_agent_sdk

from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore
from compactd.integrations.frameworks.claude_agent_sdk.versions import TESTED
from tests.frameworks.environment import ROOT

PAGE = (ROOT / "docs" / "claude-agent-sdk.md").read_text("utf-8")


def test_the_pages_code_runs() -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/claude-agent-sdk.md", "exec"), names)
    assert inspect.iscoroutinefunction(names["ask"])
    assert isinstance(names["store"], CompactdSessionStore)


def test_the_example_runs_without_a_key() -> None:
    example = ROOT / "examples" / "frameworks" / "with_claude_agent_sdk.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120, check=True)
    assert "Loaded compacted:  12 entries" in done.stdout
    assert "Nothing is lost:   True" in done.stdout


def test_the_versions_of_the_page_are_those_of_the_tests() -> None:
    assert f"claude-agent-sdk {version('claude-agent-sdk')}" == TESTED
    assert TESTED in PAGE
    assert f"({claude_agent_sdk._cli_version.__cli_version__})" in PAGE
