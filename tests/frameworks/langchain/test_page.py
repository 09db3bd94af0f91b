"""What docs/langchain.md and the example say is true."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from langchain_core.messages import AIMessage

from compactd.integrations.frameworks.langchain.versions import TESTED
from tests.frameworks.langchain.agents import Scripted

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "langchain.md").read_text()


def test_the_pages_code_runs() -> None:
    names = {"model": Scripted(answer=lambda *_: AIMessage("Hello.")), "tools": []}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "docs/langchain.md", "exec"), names)


def test_the_example_runs_without_a_key() -> None:
    example = ROOT / "examples" / "frameworks" / "with_langchain.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120, check=True)
    assert "messages in the agent's state: 84" in done.stdout
    assert "(tool) meter 3, hour 07: 91 kWh" in done.stdout


def test_the_versions_of_the_page_are_those_of_the_tests() -> None:
    for package in ("langchain", "langchain-core", "langgraph", "deepagents"):
        series = ".".join(version(package).split(".")[:2])
        assert f"{package} {series}" in PAGE
    assert TESTED in PAGE
