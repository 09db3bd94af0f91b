"""Hermes itself for tests: its `AIAgent`, headless, against the provider on loopback."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compactd
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.talk import SYSTEM, TOOLS

Message = dict[str, Any]

PLUGIN = Path(compactd.__file__).parent / "integrations" / "frameworks" / "hermes" / "plugin"
LEAST_WINDOW = 64_000
"""The smallest window that Hermes accepts for a model."""
TOOLSET = "inspection"


def configure(engine: str = "compactd", *, host: dict[str, Any] | None = None, **options: Any) -> None:
    """Write Hermes' configuration, and load its plugins again. `options`: those of the plugin."""
    from hermes_cli.plugins import get_plugin_manager

    home = Path(os.environ["HERMES_HOME"])
    if not (home / "plugins" / "compactd").exists():
        shutil.copytree(PLUGIN, home / "plugins" / "compactd", ignore=shutil.ignore_patterns("__pycache__"))
    config = {
        "model": {"context_length": LEAST_WINDOW},
        "context": {"engine": engine},
        "plugins": {"enabled": ["compactd"], "entries": {"compactd": options}},
        **(host or {}),
    }
    # JSON is YAML, too.
    (home / "config.yaml").write_text(json.dumps(config))
    get_plugin_manager().discover_and_load(force=True)


def agent_of(server: Provider | str, session_id: str | None = None, **options: Any) -> Any:
    """Return Hermes' agent with the tools of the conversation in `support/talk.py`. `server`: the provider,
    or its address.
    """
    from run_agent import AIAgent

    for tool in TOOLS:
        add_tool(tool)
    given = {
        "base_url": server if isinstance(server, str) else server.openai_url,
        "api_key": "none",
        "provider": "custom",
        "model": MODEL,
        "enabled_toolsets": [TOOLSET, "context_engine"],
        "quiet_mode": True,
        "ephemeral_system_prompt": SYSTEM,
        "skip_context_files": True,
        "skip_memory": True,
        "max_iterations": 1_000,
        "tool_delay": 0,
        "session_id": session_id,
    }
    return AIAgent(**{**given, **options})


def add_tool(tool: Callable[[int], str]) -> None:
    """Give Hermes a tool with one number as its argument."""
    from tools.registry import registry

    registry.register(
        name=tool.__name__,
        toolset=TOOLSET,
        schema={
            "name": tool.__name__,
            "description": tool.__doc__,
            "parameters": {
                "type": "object",
                "properties": {"number": {"type": "integer"}},
                "required": ["number"],
            },
        },
        handler=lambda arguments, **_: tool(arguments["number"]),
    )


def have(agent: Any, provider: Provider) -> list[Message]:
    """Have the whole conversation. Return the messages that Hermes holds at the end."""
    messages: list[Message] = []
    for request in provider.asks():
        done = agent.run_conversation(request, conversation_history=messages or None)
        assert done["completed"], done["error"]
        messages = done["messages"]
    return messages


def faults(provider: Provider) -> list[str]:
    """Return what is wrong in the requests of a conversation. Hermes also asks a server on this machine which
    kind it is."""
    return [fault for fault in broken(provider) if "no such path" not in fault]


def is_summary(message: Message) -> bool:
    return str(message["content"]).startswith("[CONTEXT SUMMARY]:")
