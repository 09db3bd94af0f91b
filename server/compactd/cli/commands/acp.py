"""`compactd acp`: an agent for editors that speak the Agent Client Protocol, or a proxy for another ACP
agent.
"""

from __future__ import annotations

import os
import sys

from msgspec import Struct

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Argument, Command, Option
from compactd.cli.framework.complete import models
from compactd.cli.framework.exit_codes import DONE, USAGE, CommandError
from compactd.cli.framework.options import BASE_URL, model_param
from compactd.cli.framework.page import Page

ABOUT = """\
Runs an agent for editors that speak the Agent Client Protocol (Zed, toad ...), on
stdin and stdout.

With a command after --, compactd is a proxy for that agent. It shows how full the
context is if the agent does not, stores the conversation, and answers /compact,
/context and /sessions itself. After /compact the agent continues in a new session
that starts with compactd's summary and the newest messages.

Without a command, compactd is the agent and uses the model that --model names. It
reads and writes files and runs commands through the editor, which asks you first.
API keys come from the environment or keys.toml.
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    agent: tuple[str, ...]
    model: str | None
    base_url: str | None
    window: int | None
    system: str | None


def run(options: Options, page: Page) -> int:
    """Serve ACP until the editor closes the connection."""
    import asyncio

    from compactd.integrations.acp.run import run_proxy, serve_agent

    start: dict[str, object] = {}
    if options.model is not None:
        start["model"] = model_param(options.model, options.base_url)
    elif options.base_url is not None:
        raise CommandError("--base-url needs --model.", exit_code=USAGE)
    if options.window is not None:
        start["context_window"] = options.window
    if options.agent:
        if options.system is not None:
            raise CommandError(
                "--system cannot be used with an agent after --: that agent has its own system prompt.",
                exit_code=USAGE,
            )
        try:
            return asyncio.run(run_proxy(options.agent, start, dict(os.environ)))
        except OSError as error:
            raise CommandError(f"{options.agent[0]} cannot be started: {error.strerror}.") from error
    if options.model is None:
        raise CommandError(
            "name a model, or an agent's command after --.",
            hint="Use compactd acp --model anthropic/claude-sonnet-4-5, or compactd acp -- opencode acp.",
            exit_code=USAGE,
        )
    if sys.stdin.isatty():
        page.line("An editor starts this command and speaks ACP to it; see docs/acp.md. Ctrl-C ends it.")
    asyncio.run(serve_agent(start, options.system, dict(os.environ)))
    return DONE


COMMAND = Command(
    "acp",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "agent",
            "the command that starts the agent, after --",
            required=False,
            is_many=True,
            metavar="-- AGENT",
        ),
        Option(
            "--model",
            "the model; with an agent after --: the model whose window is shown",
            metavar="PROVIDER/ID",
            completed=models,
        ),
        BASE_URL,
        Option("--window", "the agent's context window in tokens", metavar="N", read=sizes.tokens),
        Option("--system", "the system prompt of compactd's agent"),
    ),
    examples=(
        ("compactd acp --model anthropic/claude-sonnet-4-5", "compactd is the agent"),
        (
            "compactd acp --window 1M -- opencode acp",
            "a proxy for OpenCode, with a window of 1,000,000 tokens",
        ),
    ),
    has_json=False,
)
