"""`compactd chat`: talks to a model through the daemon, which stores the conversation and compacts it."""

from __future__ import annotations

import os
import sys

from msgspec import Struct

from compactd.cli.chat.start import ECHO, run_app, why_no_app
from compactd.cli.framework.command import Command, Flag, Option
from compactd.cli.framework.complete import models, session_ids
from compactd.cli.framework.exit_codes import DONE, FAILED, CommandError
from compactd.cli.framework.options import BASE_URL, model_param
from compactd.cli.framework.page import Page, without_controls
from compactd.client import Client, Event, RpcError
from compactd.protocol.wire import StartResult

ABOUT = """\
Talks to a model. compactd stores the conversation, compacts it when it grows too long,
and shows what fills the context. API keys come from the environment
(ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY ...) or keys.toml.

With textual installed (the extra `tui`), it opens a full-screen app.
Otherwise, and in a pipe, in a small or dumb terminal, and with --json or --plain, it
reads one prompt per line until the input ends. The commands /compact, /undo and
/state work there.
"""

MAX_EVENT_WAIT_S = 3600.0
"""The longest wait for an event after a prompt, in seconds. A local model may need minutes to read a long
conversation.
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
        )
    reason = "" if options.plain or page.is_json else why_no_app(os.environ)
    if reason is None:
        return run_app(_start(options), is_echo=options.echo, theme=options.theme)
    if reason:
        page.line(reason)
    return _by_line(options, page)


def _by_line(options: Options, page: Page) -> int:
    """Read prompts line by line until the input ends. Return `FAILED` if one of them failed."""
    with Client(env={**os.environ, **ECHO} if options.echo else None) as client:
        started = client.ask("session/start", _start(options), StartResult)
        talk = _Talk(client, started.session_id, page, is_echo=options.echo)
        if not page.is_json:
            window = f"{started.context_window:,} tokens" if started.context_window else "unknown"
            page.line(f"session {started.session_id}, {started.model or 'no model'}, window {window}")
        code = DONE
        while (text := _line(page)) is not None:
            if text.strip() and not talk.run_line(text.strip()):
                code = FAILED
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


def _line(page: Page) -> str | None:
    if sys.stdin.isatty() and not page.is_json:
        sys.stdout.write("> ")
        sys.stdout.flush()
    return sys.stdin.readline() or None


class _Talk:
    """A conversation in one session, and how its events are printed."""

    def __init__(self, client: Client, session_id: str, page: Page, *, is_echo: bool) -> None:
        self._is_echo = is_echo
        self._client = client
        self._id = session_id
        self._page = page

    def run_line(self, text: str) -> bool:
        """Execute an input line. Return False if it failed; the conversation goes on."""
        try:
            return self._execute(text)
        except RpcError as error:
            if error.code < 0:
                raise
            # The wording for a compaction is prescribed: docs/specs-evmts-opencode.md, "evmts-32.md",
            # "slash-command-handler".
            said = f"compaction failed: {error.message}" if text.startswith("/compact") else error.message
            if self._page.is_json:
                self._page.json({"error": {"code": error.code, "message": error.message}})
            else:
                sys.stderr.write(f"{without_controls(said)} ({error.code})\n")
            return False

    def _execute(self, text: str) -> bool:
        command, _, rest = text.partition(" ")
        match command:
            case "/compact":
                self._compact(rest.strip())
            case "/undo":
                undone = self._client.session_undo(session_id=self._id)
                self._print({"undo": undone}, f"undone; the context now has {undone.message_count} messages")
            case "/state":
                self._state()
            case _ if self._is_echo:
                self._echo(text)
            case _:
                return self._prompt(text)
        return True

    def _print(self, value: dict[str, object], text: str) -> None:
        if self._page.is_json:
            self._page.json(value)
        else:
            for line in text.split("\n"):
                self._page.line(line)

    def _state(self) -> None:
        usage = self._client.agent_state(session_id=self._id).token_usage
        text = f"{usage.current_context_tokens or 0:,} of {usage.context_window or 0:,} tokens"
        self._print({"token_usage": usage}, text)

    def _compact(self, focus: str) -> None:
        from compactd.integrations.acp.commands import describe_compaction

        done = self._client.session_compact(
            session_id=self._id, instructions=focus or None, timeout_s=MAX_EVENT_WAIT_S
        )
        self._print({"compaction": done}, describe_compaction(done))

    def _echo(self, text: str) -> None:
        asked = {"role": "user", "content": text}
        self._client.call("session/append", {"session_id": self._id, "messages": [asked]})
        self._client.call("turn/begin", {"session_id": self._id}, timeout_s=MAX_EVENT_WAIT_S)
        said = {"role": "assistant", "content": text}
        self._client.call("turn/end", {"session_id": self._id, "messages": [said]})
        self._print({"echo": text}, text)

    def _prompt(self, text: str) -> bool:
        prompted = self._client.agent_prompt(session_id=self._id, text=text, timeout_s=MAX_EVENT_WAIT_S)
        for event in self._client.events(MAX_EVENT_WAIT_S):
            if event.session_id != self._id:
                continue
            if self._page.is_json:
                self._page.json({"event": event.fields})
            else:
                self._show(event)
            if event.type in ("agent_end", "error") and event.fields.get("turn_id") == prompted.turn_id:
                return event.type == "agent_end"
        raise CommandError(
            "the model gave no answer.", hint="The session is stored; continue it with --session."
        )

    def _show(self, event: Event) -> None:
        fields = event.fields
        match event.type:
            case "message_delta":
                sys.stdout.write(without_controls(str(fields["delta"])))
                sys.stdout.flush()
            case "message_end":
                sys.stdout.write("\n")
                sys.stdout.flush()
            case "retry":
                self._page.line(f"({fields['reason']}; trying again in {fields['delay_s']} s)")
            case "compaction_end":
                result = fields.get("result")
                if isinstance(result, dict) and result.get("compacted"):
                    self._page.line(
                        f"Conversation compacted: {result['messages_removed']:,} messages → summary"
                        f" ({result['tokens_before']:,} → {result['tokens_after']:,} tokens)"
                    )
            case "error":
                sys.stderr.write(f"{without_controls(str(fields['message']))} ({fields['code']})\n")
            case _:
                pass


COMMAND = Command(
    "chat",
    Options,
    run,
    about=ABOUT,
    params=(
        Option(
            "--model", "the model; a stored session keeps its own", metavar="PROVIDER/ID", completed=models
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
