"""What docs/litellm.md and the example say is true."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import litellm

from compactd.integrations.frameworks.litellm.versions import TESTED
from tests.frameworks.litellm import agents
from tests.frameworks.support.provider import MODEL, Provider

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "litellm.md").read_text()


async def test_the_pages_code_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 7
    names: dict[str, Any] = {"model": f"openai/{MODEL}"}
    with Provider() as provider, agents.registered():
        litellm.api_base, litellm.api_key = provider.openai_url, agents.KEY
        try:
            for block in blocks:
                exec(compile(block, "docs/litellm.md", "exec"), names)
            messages = [{"role": "user", "content": f"hello {provider.ask(0)}"}]
            await names["ask"](messages)
            await names["ask_again"](messages)
            names["ask_now"](messages)
        finally:
            litellm.api_base = litellm.api_key = None
    assert len(provider.requests) == 3
    assert "hello Lot 1" in names["recall"]('{"query": "hello"}')
    assert names["logger"].session("docs").state().message_count == 1


def test_the_example_runs_without_a_key() -> None:
    example = ROOT / "examples" / "frameworks" / "with_litellm.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120, check=True)
    assert "messages in the loop's list: 85" in done.stdout
    assert "(tool) meter 3, hour 07: 91 kWh" in done.stdout


def test_the_versions_of_the_page_are_those_of_the_tests() -> None:
    series = ".".join(version("litellm").split(".")[:2])
    assert f"litellm {series}" == TESTED
    assert f"Tested with {TESTED}" in PAGE
