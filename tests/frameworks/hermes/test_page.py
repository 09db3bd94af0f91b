"""What docs/hermes.md and the example say is true."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from compactd.integrations.frameworks.hermes.versions import TESTED
from tests.frameworks.hermes.agents import agent_of, configure
from tests.frameworks.support.provider import Provider

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "hermes.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_pages_code_runs() -> None:
    class Context:
        engine: Any = None

        def register_context_engine(self, engine: Any) -> None:
            self.engine = engine

    (code,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(code, "docs/hermes.md", "exec"), names)
    context = Context()
    names["register"](context)
    assert (context.engine.name, context.engine.options.context_window) == ("compactd", 200_000)


def test_the_pages_options_are_options() -> None:
    (text,) = blocks("yaml")
    options = yaml.safe_load(text)["plugins"]["entries"]["compactd"]
    configure(**options)
    with Provider(window=None) as provider:
        engine = agent_of(provider).context_compressor
    assert (engine.name, engine.recall, engine.options.persist) == ("compactd", True, True)
    assert engine.options.compaction == {"keep_recent_tokens": 40_000, "threshold_ratio": 0.7}


def test_the_example_runs_without_a_key(tmp_path: Path) -> None:
    example = ROOT / "examples" / "frameworks" / "with_hermes.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120, check=True)
    assert "in the largest request: 26" in done.stdout
    assert "(tool) meter 3, hour 07: 91 kWh" in done.stdout


def test_the_version_of_the_page_is_that_of_the_tests() -> None:
    assert f"hermes-agent {version('hermes-agent')}" == TESTED
    assert f"Tested with {TESTED}." in PAGE
