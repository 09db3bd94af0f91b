"""What docs/pydantic-ai.md and the example say is true."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from compactd.integrations.frameworks.pydantic_ai.versions import TESTED
from tests.frameworks.pydantic_ai.scripted import Script

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "pydantic-ai.md").read_text()


def test_the_pages_code_runs() -> None:
    names = {"model": Script(turns=0).model()}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "docs/pydantic-ai.md", "exec"), names)


def test_the_example_runs_without_a_key() -> None:
    example = ROOT / "examples" / "frameworks" / "with_pydantic_ai.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120, check=True)
    assert "messages in the history: 84" in done.stdout
    assert "(tool) meter 3, hour 07: 91 kWh" in done.stdout


def test_the_version_of_the_page_is_that_of_the_tests() -> None:
    assert version("pydantic-ai-slim") == TESTED
    assert f"pydantic-ai-slim {TESTED}" in PAGE
