"""What docs/google-adk.md and the example say is true."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.plugins import base_plugin
from google.adk.runners import InMemoryRunner

from compactd.integrations.frameworks.google_adk.versions import ADK, TESTED, lacks
from tests.frameworks.google_adk.agents import ask, reads

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "google-adk.md").read_text()


def test_the_pages_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"root_agent": LlmAgent(name="reader", model=reads(0))}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ADK calls its compaction experimental
        for block in blocks:
            exec(compile(block, "docs/google-adk.md", "exec"), names)

    async def talk() -> None:
        runner = InMemoryRunner(app=names["app"])
        session = await runner.session_service.create_session(
            app_name="my_app", user_id="me", session_id="one"
        )
        await ask(runner, session, "Hello there.")
        await names["look"](runner.session_service)

    asyncio.run(talk())
    assert "Hello there." in capsys.readouterr().out
    assert names["summarized"].events_compaction_config is names["config"]


def test_the_example_runs_without_a_key() -> None:
    example = ROOT / "examples" / "frameworks" / "with_google_adk.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120, check=True)
    assert "events in the session: 84" in done.stdout
    assert "(tool) meter 3, hour 07: 91 kWh" in done.stdout
    assert done.stderr == ""


def test_the_version_of_the_page_is_that_of_the_tests() -> None:
    assert f"google-adk {version('google-adk')}".startswith(f"{TESTED}.")
    assert f"Tested with {TESTED}." in PAGE


def test_what_a_later_version_may_lack_is_named() -> None:
    ADK.check()
    changed = SimpleNamespace(BasePlugin=base_plugin.BasePlugin, LlmRequest=None)
    assert "`LlmRequest.contents`" in list(lacks(changed))  # type: ignore[arg-type]
    missing = list(lacks(SimpleNamespace()))  # type: ignore[arg-type]
    assert "parameter `error` of `BasePlugin.on_model_error_callback`" in missing
    assert "`CallbackContext.get_invocation_context`" in missing
