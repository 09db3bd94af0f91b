"""`compactd chat`: a conversation with a model through the daemon, which keeps it and compacts it."""

from __future__ import annotations

import os
import sys

from msgspec import Struct

from compactd.cli.chat.start import ECHO, run_app, why_not
from compactd.cli.framework.command import Command, Flag, Option
from compactd.cli.framework.complete import models, session_ids
from compactd.cli.framework.exit_codes import DONE, FAILED, Stop
from compactd.cli.framework.page import Page, cleaned, plural
from compactd.client import Client, Event, RpcError
from compactd.protocol.wire import PromptResult, StartResult

ABOUT = """\
A conversation with a model. The daemon keeps it and compacts it where it grows too
long; what fills the context stands beside it. Keys come from the environment
(ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY ...) or keys.toml.

In a pipe, a small or dumb terminal, with --json or --plain, and where textual is not
installed (pip install 'compactd[tui]'), it goes line by line, one line a prompt; the
end of the input ends it. It knows /compact, /undo and /state there.
"""

PATIENCE_S = 3600.0
"""How long nothing may come of a prompt: a local model reads a long conversation for minutes."""


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    model: str | None
    base_url: str | None
    session: str | None
    system: str | None
    echo: bool
    plain: bool
    theme: str | None


def run(options: Options, page: Page) -> int:
    """As an app where that can be shown; else line by line, with `--json` an object for each event."""
    if options.model is None and options.session is None and not options.echo:
        raise Stop(
            "name a model.",
            hint="compactd chat --model anthropic/claude-sonnet-4-5, or --echo to look around without one",
        )
    reason = "" if options.plain or page.is_json else why_not(os.environ)
    if reason is None:
        return run_app(_start(options), is_echo=options.echo, theme=options.theme)
    if reason:
        page.line(reason)
    return _by_line(options, page)


def _by_line(options: Options, page: Page) -> int:
    """Reads prompts until the input ends."""
    with Client(env={**os.environ, **ECHO} if options.echo else None) as client:
        started = client.ask("session/start", _start(options), StartResult)
        talk = _Talk(client, started.session_id, page, is_echo=options.echo)
        if not page.is_json:
            window = f"{started.context_window:,} tokens" if started.context_window else "unknown"
            page.line(f"session {started.session_id}, {started.model}, window {window}")
        code = DONE
        while (text := _line(page)) is not None:
            if text.strip() and not talk.did(text.strip()):
                code = FAILED
        return code


def _start(options: Options) -> dict[str, object]:
    params: dict[str, object] = {}
    if options.session is not None:
        params["session_id"] = options.session
    if options.system is not None:
        params["system_prompt"] = options.system
    if options.model is not None:
        params["model"] = (
            options.model if options.base_url is None else {"id": options.model, "base_url": options.base_url}
        )
    return params


def _line(page: Page) -> str | None:
    if sys.stdin.isatty() and not page.is_json:
        sys.stdout.write("> ")
        sys.stdout.flush()
    return sys.stdin.readline() or None


class _Talk:
    """One session, and what is shown of it."""

    def __init__(self, client: Client, session_id: str, page: Page, *, is_echo: bool) -> None:
        self._is_echo = is_echo
        self._client = client
        self._id = session_id
        self._page = page

    def did(self, text: str) -> bool:
        """Does what a line asks for; false where that failed: the talk goes on."""
        try:
            return self._done(text)
        except RpcError as error:
            if error.code < 0:
                raise
            # The words for a compaction are literal: docs/specs-evmts-opencode.md, "evmts-32.md",
            # "slash-command-handler".
            said = f"compaction failed: {error.message}" if text.startswith("/compact") else error.message
            if self._page.is_json:
                self._page.json({"error": {"code": error.code, "message": error.message}})
            else:
                sys.stderr.write(f"{cleaned(said)} ({error.code})\n")
            return False

    def _done(self, text: str) -> bool:
        command, _, rest = text.partition(" ")
        match command:
            case "/compact":
                return self._compacted(rest.strip())
            case "/undo":
                done = self._client.call("session/undo", {"session_id": self._id})
                self._say({"undo": done}, f"taken back; the context has {done['message_count']} messages")
                return True
            case "/state":
                return self._state()
            case _:
                return self._prompted(text)

    def _say(self, value: dict[str, object], text: str) -> None:
        if self._page.is_json:
            self._page.json(value)
        else:
            self._page.line(text)

    def _state(self) -> bool:
        usage = self._client.call("agent/state", {"session_id": self._id})["token_usage"]
        assert isinstance(usage, dict)
        self._say(
            {"token_usage": usage},
            f"{usage['current_context_tokens']:,} of {usage['context_window'] or 0:,} tokens",
        )
        return True

    def _compacted(self, focus: str) -> bool:
        params = {"session_id": self._id, **({"instructions": focus} if focus else {})}
        done = self._client.call("session/compact", params, timeout_s=PATIENCE_S)
        if not done["compacted"]:
            reason = str(done["reason"]).removeprefix("nothing to compact: ")
            self._say({"compaction": done}, f"No compaction needed: {reason}")
            return True
        removed = done["messages_removed"]
        assert isinstance(removed, int)
        self._say({"compaction": done}, f"✓ Compacted {plural(removed, 'message')}")
        if not self._page.is_json:
            before, after, saved = done["tokens_before"], done["tokens_after"], done["tokens_saved"]
            self._page.line(f"  Tokens: {before:,} → {after:,} (saved {saved:,})")
        return True

    def _echoed(self, text: str) -> bool:
        asked = {"role": "user", "content": text}
        self._client.call("session/append", {"session_id": self._id, "messages": [asked]})
        self._client.call("turn/begin", {"session_id": self._id}, timeout_s=PATIENCE_S)
        said = {"role": "assistant", "content": text}
        self._client.call("turn/end", {"session_id": self._id, "messages": [said]})
        self._say({"echo": text}, text)
        return True

    def _prompted(self, text: str) -> bool:
        if self._is_echo:
            return self._echoed(text)
        prompted = self._client.ask(
            "agent/prompt", {"session_id": self._id, "text": text}, PromptResult, timeout_s=PATIENCE_S
        )
        for event in self._client.events(PATIENCE_S):
            if event.session_id != self._id:
                continue
            if self._page.is_json:
                self._page.json({"event": event.fields})
            else:
                self._show(event)
            if event.type in ("agent_end", "error") and event.fields.get("turn_id") == prompted.turn_id:
                return event.type == "agent_end"
        raise Stop("the model gave no answer.", hint="The session is kept; go on with --session.")

    def _show(self, event: Event) -> None:
        fields = event.fields
        match event.type:
            case "message_delta":
                sys.stdout.write(cleaned(str(fields["delta"])))
                sys.stdout.flush()
            case "message_end":
                sys.stdout.write("\n")
                sys.stdout.flush()
            case "retry":
                self._page.line(f"({fields['reason']}; again in {fields['delay_s']} s)")
            case "compaction_end":
                result = fields.get("result")
                if isinstance(result, dict) and result.get("compacted"):
                    self._page.line(
                        f"Conversation compacted: {result['messages_removed']:,} messages → summary"
                        f" ({result['tokens_before']:,} → {result['tokens_after']:,} tokens)"
                    )
            case "error":
                sys.stderr.write(f"{cleaned(str(fields['message']))} ({fields['code']})\n")
            case _:
                pass


COMMAND = Command(
    "chat",
    Options,
    run,
    about=ABOUT,
    params=(
        Option(
            "--model", "the model; a stored session knows its own", metavar="PROVIDER/ID", completed=models
        ),
        Option("--base-url", "where the model is, if not at its provider's", metavar="URL"),
        Option("--session", "a stored session to go on with", metavar="ID", completed=session_ids),
        Option("--system", "the system prompt"),
        Flag("--echo", "no model: each prompt is its own answer, and nothing is sent anywhere"),
        Flag("--plain", "line by line"),
        Option("--theme", "dark or light; else as the terminal says", choices=("dark", "light")),
    ),
    examples=(
        ("compactd chat --model anthropic/claude-sonnet-4-5", "a new conversation"),
        ("compactd chat --model ollama/llama3.1", "with a model on this machine"),
        ("compactd chat --session ID", "goes on with a stored one"),
        ("compactd chat --echo", "a look around, without a key"),
    ),
)
