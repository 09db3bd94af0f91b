"""`compactd chat`: talks to a model through the daemon, which stores the conversation and compacts it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd.cli.chat.start import ECHO, run_app, why_no_app
from compactd.cli.framework.command import Command, Flag, Option
from compactd.cli.framework.complete import models, session_ids
from compactd.cli.framework.exit_codes import DONE, FAILED, INTERRUPTED, USAGE, CommandError
from compactd.cli.framework.options import BASE_URL, model_param
from compactd.cli.framework.page import Page, one_line
from compactd.client import Client
from compactd.protocol.wire import StartResult

if TYPE_CHECKING:
    from compactd.cli.chat.line_chat import LineChat

ABOUT = """\
Talks to a model. compactd stores the conversation, compacts it when it grows too long,
and shows what fills the context. API keys come from the environment
(ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY ...) or keys.toml.

With textual installed (the extra `tui`), it opens a full-screen app.
Otherwise, and in a pipe, in a small or dumb terminal, and with --json or --plain, it
reads one prompt per line until the input ends. /help lists the commands, which are the
same in both. Ctrl-C stops an answer; pressed twice, it quits. Ctrl-D quits.
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    model: str | None
    base_url: str | None
    session: str | None
    system: str | None
    echo: bool
    plain: bool
    theme: str | None


def run(options: Options, page: Page) -> int:
    """Open the full-screen app if possible. Otherwise read prompts line by line; with `--json`, print one
    JSON object per event.
    """
    if options.model is None and options.session is None and not options.echo:
        raise CommandError(
            "name a model.",
            hint="Use compactd chat --model anthropic/claude-sonnet-4-5, or --echo to try it without one.",
            exit_code=USAGE,
        )
    reason = "" if options.plain or page.is_json else why_no_app(os.environ)
    if reason is None:
        return run_app(_start(options), is_echo=options.echo, theme=options.theme)
    if reason:
        page.line(reason)
    return _by_line(options, page)


def _by_line(options: Options, page: Page) -> int:
    """Read prompts line by line until the input ends, `/quit` or Ctrl-C. Return `FAILED` if one of them
    failed.
    """
    from compactd.cli.chat.chat_session import CLIENT, was_named
    from compactd.cli.chat.gauge import window_text
    from compactd.cli.chat.line_chat import LineChat
    from compactd.cli.chat.welcome import mode_lines

    start = _start(options)
    with Client(env={**os.environ, **ECHO} if options.echo else None) as client:
        started = client.ask("session/start", {**start, "client": CLIENT}, StartResult)
        talk = LineChat(client, started, page, is_echo=options.echo, is_named=was_named(start))
        is_terminal = sys.stdin.isatty() and not page.is_json
        if not page.is_json:
            model = one_line(started.model) if started.model else "no model"
            page.line(f"session {talk.id}, {model}, {window_text(started.token_usage)}")
        if is_terminal:
            for line in (*mode_lines(started.model, is_echo=options.echo), "/help lists the commands."):
                page.line(line)
        code = _read_prompts(talk, page, is_terminal=is_terminal)
        if talk.leave() and is_terminal:
            page.line(f"session {talk.id} is stored; continue it with: compactd chat --session {talk.id}")
        return code


def _read_prompts(talk: LineChat, page: Page, *, is_terminal: bool) -> int:
    """Run each line that the user types. Ctrl-C stops what is running; a second one ends the chat."""
    code, is_leaving = DONE, False
    while not talk.is_over:
        try:
            text = _line(is_terminal=is_terminal)
            if text is None:
                if is_terminal:
                    page.line()
                return code
            if text.strip():
                is_leaving = False
                if not talk.run_line(text.strip()):
                    code = FAILED
        except KeyboardInterrupt:
            if not is_terminal or is_leaving:
                if is_terminal:
                    page.line()
                return INTERRUPTED
            is_leaving = True
            talk.stop()
            page.line("\nCtrl-C again quits")
    return code


def _start(options: Options) -> dict[str, object]:
    params: dict[str, object] = {}
    if options.session is not None:
        params["session_id"] = options.session
    if options.system is not None:
        params["system_prompt"] = options.system
    if options.model is not None:
        params["model"] = model_param(options.model, options.base_url)
    return params


def _line(*, is_terminal: bool) -> str | None:
    if is_terminal:
        sys.stdout.write("> ")
        sys.stdout.flush()
    return sys.stdin.readline() or None


COMMAND = Command(
    "chat",
    Options,
    run,
    about=ABOUT,
    params=(
        Option(
            "--model",
            "the model; a stored session keeps its own",
            metavar="PROVIDER/ID",
            completed=models,
            is_model=True,
        ),
        BASE_URL,
        Option("--session", "the stored session to continue", metavar="ID", completed=session_ids),
        Option("--system", "the system prompt"),
        Flag("--echo", "without a model: each prompt is answered with itself, nothing is sent"),
        Flag("--plain", "read one prompt per line instead of opening the app"),
        Option("--theme", "the app's colours; by default those of the terminal", choices=("dark", "light")),
    ),
    examples=(
        ("compactd chat --model anthropic/claude-sonnet-4-5", "start a new conversation"),
        ("compactd chat --model ollama/llama3.1", "use a model on this machine"),
        ("compactd chat --session ID", "continue a stored session"),
        ("compactd chat --echo", "try the app without an API key"),
    ),
)
