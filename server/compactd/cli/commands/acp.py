"""`compactd acp`: an agent for editors that speak ACP, or a proxy before another one."""

from __future__ import annotations

import os
import sys

from msgspec import Struct

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Argument, Command, Option
from compactd.cli.framework.complete import models
from compactd.cli.framework.exit_codes import DONE, USAGE, Stop
from compactd.cli.framework.page import Page

ABOUT = """\
For editors that speak the Agent Client Protocol (Zed, toad ...), on stdin and stdout.

With a command behind --, a proxy before that agent: it shows how full the context is
where the agent does not, keeps all that is said, and answers /compact, /context and
/sessions itself. After /compact the agent goes on in a new session of its own that
begins with our summary and the newest messages.

Without one, an agent of compactd's own, with the model that --model names: it reads and
writes files and runs commands through the editor, which asks you first. Keys come from
the environment or keys.toml.
"""


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    agent: tuple[str, ...]
    model: str | None
    base_url: str | None
    window: int | None
    system: str | None


def run(options: Options, page: Page) -> int:
    """Serves until the editor ends."""
    import asyncio

    from compactd.integrations.acp.run import proxied, served

    start: dict[str, object] = {}
    if options.model is not None:
        start["model"] = (
            options.model if options.base_url is None else {"id": options.model, "base_url": options.base_url}
        )
    elif options.base_url is not None:
        raise Stop("--base-url goes with --model.", exit_code=USAGE)
    if options.window is not None:
        start["context_window"] = options.window
    if options.agent:
        if options.system is not None:
            raise Stop("--system is for our own agent: another one has its own.", exit_code=USAGE)
        try:
            return asyncio.run(proxied(options.agent, start, dict(os.environ)))
        except OSError as error:
            raise Stop(f"{options.agent[0]} cannot be started: {error.strerror}.") from error
    if options.model is None:
        raise Stop(
            "name a model, or an agent behind --.",
            hint="compactd acp --model anthropic/claude-sonnet-4-5, or: compactd acp -- opencode acp",
            exit_code=USAGE,
        )
    if sys.stdin.isatty():
        page.line("An editor starts this and speaks ACP to it; docs/acp.md tells how. Ctrl-C ends it.")
    asyncio.run(served(start, options.system, dict(os.environ)))
    return DONE


COMMAND = Command(
    "acp",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("agent", "the agent's command, behind --", required=False, is_many=True, metavar="-- AGENT"),
        Option(
            "--model",
            "the model; before an agent: whose window it is",
            metavar="PROVIDER/ID",
            completed=models,
        ),
        Option("--base-url", "where the model is, if not at its provider's", metavar="URL"),
        Option("--window", "the agent's context window in tokens", metavar="N", read=sizes.tokens),
        Option("--system", "our own agent's system prompt"),
    ),
    examples=(
        ("compactd acp --model anthropic/claude-sonnet-4-5", "an agent of its own"),
        ("compactd acp --window 1M -- opencode acp", "before OpenCode"),
    ),
    has_json=False,
)
