"""The plugin as Hermes loads it: installed by one command, with options of Hermes' configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compactd.integrations.frameworks.hermes.versions import TESTED, lacks
from tests.frameworks.hermes.agents import PLUGIN, agent_of, configure, faults, have
from tests.frameworks.hermes.test_failures import conversation, engine_for, faults_of
from tests.frameworks.support.provider import WINDOW, Provider
from tests.frameworks.support.reading import items_of, tools_of
from tests.frameworks.support.talk import talk

SMALL = talk(lots=1, parts=5)

HERMES = """
import sys
def watch(event, arguments):
    if event == "socket.getaddrinfo" or event == "socket.connect" and isinstance(arguments[1], tuple):
        print("asked for", arguments, file=sys.stderr)
sys.addaudithook(watch)
from hermes_cli.main import main
main()
"""
"""Runs Hermes' command line, and prints every connection."""
AGENT = """
import run_agent
agent = run_agent.AIAgent(
    base_url="http://127.0.0.1:9/v1", api_key="none", provider="custom", model="m", quiet_mode=True
)
engine = agent.context_compressor
print(engine.name, engine.threshold_tokens, "recall" in agent.valid_tool_names)
"""


def ran(home: Path, *arguments: str) -> str:
    """Run a program of this Python with a new home folder, and return what it printed."""
    env = {**os.environ, "HOME": str(home), "HERMES_HOME": str(home / ".hermes")}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "asked for" not in done.stderr
    return done.stdout


def test_three_commands_are_all_that_it_takes(tmp_path: Path) -> None:
    (tmp_path / ".hermes").mkdir()
    told = ran(tmp_path, "-m", "compactd", "install", "hermes")
    commands = [line.strip("`").split() for line in told.splitlines() if line.startswith("`hermes ")]
    assert len(commands) == 2
    for _, *arguments in commands:
        ran(tmp_path, "-c", HERMES, *arguments)
    ran(tmp_path, "-c", HERMES, "config", "set", "model.context_length", "100000")

    assert "enabled" in next(
        line for line in ran(tmp_path, "-c", HERMES, "plugins", "list").splitlines() if "compactd" in line
    )
    assert ran(tmp_path, "-c", AGENT).splitlines()[-1] == "compactd 80000 True"


def test_hermes_goes_on_without_compactd_and_says_why(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-I", PLUGIN / "__init__.py"], capture_output=True, text=True)
    assert "compactd is not installed in Hermes' Python" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reduce": "all"}, "reduce must be one of"),
        ({"window": 5}, "there is no option 'window'"),
        ({"compaction": {"treshold": 1}}, "there is no setting 'treshold'"),
    ],
)
def test_a_misspelt_option_is_named_and_hermes_uses_its_own_compressor(
    options: dict[str, Any], words: str
) -> None:
    from hermes_cli.plugins import get_plugin_manager

    configure(**options)
    assert words in str(get_plugin_manager()._plugins["compactd"].error)
    with Provider(SMALL) as provider:
        assert agent_of(provider).context_compressor.name == "compressor"


def test_the_engine_can_be_chosen_without_its_tool() -> None:
    configure(recall=False, compaction={"threshold_ratio": 0.5})
    with Provider(SMALL, window=None) as provider:
        agent = agent_of(provider)
        have(agent, provider)
        assert faults(provider) == []
        assert not any("recall" in tools_of(seen.body) for seen in provider.turns)
    assert agent.context_compressor.threshold_tokens == 32_000


@pytest.mark.parametrize("level", ["default", "observe", "off"])
def test_tool_outputs_are_shortened_on_request(level: str) -> None:
    configure(reduce=level, context_window=WINDOW)
    with Provider(SMALL, window=None) as provider:
        agent = agent_of(provider, f"reduced {level}")
        add_log(provider)
        agent.run_conversation(provider.ask(0))
        outputs = [text for item in items_of(provider.turns[-1].body) for _, text in item.results]

    assert any("repeated" in text or "left out" in text for text in outputs) == (level == "default")
    assert (max(map(len, outputs)) < 5_000) == (level == "default")


def add_log(provider: Provider) -> None:
    """Make the output of a tool long and repetitive, after the agent has the tools."""
    from tools.registry import registry

    lines = "\n".join(f"2026-11-28 12:00:00 INFO worker {number % 3} is alive" for number in range(400))
    entry = registry.get_entry("inspect_part")
    old = entry.handler
    entry.handler = lambda arguments, **more: f"{old(arguments, **more)}\n{lines}"


# --- what versions after 0.19.0 call --------------------------------------------------------------------


def test_a_request_may_be_shorter_than_the_conversation() -> None:
    engine = engine_for("selected", 5_000)
    messages = conversation(6)
    system = {"role": "system", "content": "Be careful."}
    request = [system, *({**message, "sent": True} for message in messages)]
    assert engine.select_context(request, conversation_messages=messages, budget_tokens=5_000) is None

    messages += conversation(20, "Go on.", first=6)
    request = [system, *({**message, "sent": True} for message in messages)]
    selected = engine.select_context(request, conversation_messages=messages, budget_tokens=5_000)

    assert selected is not None
    assert selected[0] is system
    assert len(selected) < len(request)
    assert faults_of(selected[1:]) == []
    # What stays is the request's own copy.
    assert selected[-1] is request[-1]
    # A request that Hermes put together in another way stays as it is.
    assert engine.select_context(request[::-1], conversation_messages=messages) is None
    assert engine.select_context(request) is None
    # The conversation did not change, and a compaction later keeps its beginning.
    assert engine.compression_count == 0
    engine.on_turn_complete(messages, {"prompt_tokens": 10}, turn_id="t", interrupted=False)
    assert "line 1 of file0.py" in engine.handle_tool_call("recall", {"query": "file0.py"})


def test_a_hermes_that_lacks_something_is_named() -> None:
    class Old:
        def compress(self, messages: list[object]) -> None: ...

    class Module:
        ContextEngine = Old

    missing = list(lacks(Module()))
    assert "`ContextEngine.should_compress`" in missing
    assert "parameter `focus_topic` of `ContextEngine.compress`" in missing
    assert "0.19.0" in TESTED
