"""The chat that reads one prompt per line, for pipes and for terminals that cannot show the app."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from time import time

from compactd.cli.chat.chat_session import CLIENT
from compactd.cli.chat.gauge import gauge_text
from compactd.cli.chat.input import (
    LINE_KEYS,
    SMALLEST_PLAN,
    OwnCommand,
    compact_params,
    help_text,
    no_compaction_text,
    parse_own_command,
    split_sessions,
)
from compactd.cli.chat.pieces import PromptPiece, left_behind, pieces_of, titles, turn_ends
from compactd.cli.framework.exit_codes import CommandError
from compactd.cli.framework.page import Page, one_line, plural, without_controls
from compactd.cli.framework.session_rows import session_line, shown_sessions
from compactd.client import Client, Event, RpcError
from compactd.protocol.messages import CompactionResult
from compactd.protocol.wire import HistoryEntry, StartResult

MAX_EVENT_WAIT_S = 3600.0
"""The longest wait for an event after a prompt, in seconds. A local model may need minutes to read a long
conversation.
"""

MAX_SHOWN_HITS = 20


class LineChat:
    """A conversation in one session, and how its events are printed."""

    def __init__(
        self, client: Client, started: StartResult, page: Page, *, is_echo: bool, is_named: bool
    ) -> None:
        """Talk in the session that was `started`. `is_named`: keep it even if it stays empty."""
        self._is_kept = started.resumed or is_named
        self.is_over = False
        """True after `/quit`."""
        self._is_echo = is_echo
        self._client = client
        self._id = started.session_id
        self._page = page
        self._is_answering = False
        self._commands: Mapping[str, Callable[[str], None]] = {
            "/compact": self._compact,
            "/undo": self._undo,
            "/redo": self._redo,
            "/branch": self._branch,
            "/context": self._context,
            "/model": self._model,
            "/search": self._search,
            "/sessions": self._sessions,
            "/help": self._help,
            "/quit": self._quit,
        }

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._id

    def run_line(self, text: str) -> bool:
        """Execute an input line. Return False if it failed; the conversation goes on."""
        try:
            return self._execute(text)
        except ValueError as error:
            return self._fail(None, str(error))
        except RpcError as error:
            if error.code < 0:
                raise
            # The wording for a compaction is prescribed: docs/specs-evmts-opencode.md, "evmts-32.md",
            # "slash-command-handler".
            said = f"compaction failed: {error.message}" if text.startswith("/compact") else error.message
            return self._fail(error.code, said)

    def stop(self) -> None:
        """Stop the answer that was interrupted by Ctrl-C. The text so far is kept."""
        if self._is_answering:
            self._is_answering = False
            self._client.agent_abort(session_id=self._id)
            self._page.line("\nstopped; the text so far is kept")

    def leave(self) -> bool:
        """Close the session. If it was started here and never used, delete it, so that it is not in the
        lists. Return whether it has entries.
        """
        has_entries = bool(self._client.session_history(session_id=self._id, limit=1).entries)
        if has_entries or self._is_kept:
            self._client.session_close(session_id=self._id)
        else:
            self._client.session_delete(session_id=self._id)
        return has_entries

    def _fail(self, code: int | None, message: str) -> bool:
        if self._page.is_json:
            self._page.json({"error": {"code": code, "message": message}})
        else:
            sys.stderr.write(f"{without_controls(message)}{'' if code is None else f' ({code})'}\n")
        return False

    def _execute(self, text: str) -> bool:
        own = parse_own_command(text)
        if own is not None:
            return self._run(own)
        if self._is_echo:
            self._echo(text)
            return True
        return self._prompt(text)

    def _run(self, own: OwnCommand) -> bool:
        self._commands[own.name](own.rest)
        return True

    def _print(self, value: Mapping[str, object], text: str) -> None:
        if self._page.is_json:
            self._page.json(dict(value))
        else:
            for line in text.split("\n"):
                self._page.line(line)

    # --- one method per command -----------------------------------------------------------------------

    def _compact(self, rest: str) -> None:
        from compactd.integrations.acp.commands import describe_compaction

        params = compact_params(rest)
        # Echo mode sends nothing anywhere, so no model may summarise.
        strategy = {"strategy": "extract"} if self._is_echo else {}
        done = self._ask_to_compact({**strategy, **params})
        if done.compacted:
            self._print({"compaction": done}, describe_compaction(done))
            return
        smallest = None if "keep_messages" in params else self._ask_to_compact(SMALLEST_PLAN)
        self._print({"compaction": done}, no_compaction_text(done.reason, smallest))

    def _ask_to_compact(self, params: Mapping[str, object]) -> CompactionResult:
        asked = {"session_id": self._id, **params}
        return self._client.ask("session/compact", asked, CompactionResult, timeout_s=MAX_EVENT_WAIT_S)

    def _undo(self, rest: str) -> None:
        done = self._client.session_undo(session_id=self._id)
        self._print({"undo": done}, f"undone: {_in_context(done.message_count)} · /redo")

    def _redo(self, rest: str) -> None:
        done = self._client.session_redo(session_id=self._id)
        self._print({"redo": done}, f"redone: {_in_context(done.message_count)} · /undo")

    def _branch(self, rest: str) -> None:
        if rest:
            done = self._client.session_branch(session_id=self._id, entry_id=rest)
            self._print({"branch": done}, f"on a new branch: {_in_context(done.message_count)}")
            return
        entries = self._entries()
        left = left_behind(entries)
        entries = [entry for entry in entries if entry.entry_id not in left]
        names = titles(entries)
        points = [(end, names[begin]) for begin, end in reversed(turn_ends(entries))]
        lines = [f"  {end}  after: {name}" for end, name in points]
        text = "\n".join([*lines, "/branch ENTRY continues from one of them"])
        value = {"points": [{"entry_id": end, "after": name} for end, name in points]}
        self._print(value, text if points else "there is no earlier point to branch from yet")

    def _context(self, rest: str) -> None:
        from compactd.cli.chat.usage_chart import NAMES, gauge_of, largest, legend, rows_of

        state = self._client.agent_state(session_id=self._id)
        usage = state.token_usage
        if self._page.is_json:
            self._page.json({"token_usage": usage})
            return
        rows = tuple(rows_of(self._entries(), {}).values())
        gauge = gauge_of(rows, usage, is_enabled=state.compaction.enabled)
        self._page.line(f"context {gauge_text(usage)}")
        if usage.context_window:
            doubt = "?" if gauge.is_guess else ""
            self._page.line(f"  {gauge.used:,} of {usage.context_window:,}{doubt} tokens")
        for line in legend(gauge):
            # The first character is the shade of the bar, and there is no bar here.
            self._page.line(f"  {line[2:]}")
        if gauge.threshold:
            self._page.line(f"  compacts at {gauge.threshold:,} tokens")
        for row in largest(rows, 5):
            self._page.line(
                f"  {NAMES.get(row.kind, row.kind):<12}{row.tokens:>7,}  {row.what[:60]}".rstrip()
            )

    def _model(self, rest: str) -> None:
        if not rest:
            model = self._client.agent_state(session_id=self._id).model
            text = f"the model is {model or 'not set'}; /model PROVIDER/ID changes it"
            self._print({"model": model}, text)
            return
        done = self._client.model_set(session_id=self._id, model=rest, timeout_s=MAX_EVENT_WAIT_S)
        self._print({"model_set": done}, f"the model is {done.model} · {gauge_text(done.token_usage)}")

    def _search(self, rest: str) -> None:
        if not rest:
            raise ValueError("/search needs words to search for, for example: /search timeout")
        hits = self._client.session_search(session_id=self._id, query=rest).hits
        lines = [f"{plural(len(hits), 'message')} with “{rest}”" + ("" if hits else " in this session")]
        for hit in hits[:MAX_SHOWN_HITS]:
            where = "" if hit.in_context else " · compacted"
            lines.append(f"  {hit.role} {hit.entry_id}{where} · {one_line(hit.snippet)}")
        self._print({"hits": hits}, "\n".join(lines))

    def _sessions(self, rest: str) -> None:
        picked, shows_empty = split_sessions(rest)
        if picked:
            asked = {"session_id": picked, "client": CLIENT}
            started = self._client.ask("session/start", asked, StartResult)
            if picked != self._id:
                self.leave()
                self._id, self._is_kept = started.session_id, True
            self._print({"session": started}, f"session {self._id}, {_in_context(started.message_count)}")
            return
        stored = self._client.session_list().sessions
        shown = shown_sessions(stored, shows_empty=shows_empty, here=self._id)
        now = time()
        lines = [f"  {session_line(one, now, with_id=True)}" for one in shown]
        text = "\n".join([*lines, "/sessions ID continues one of them"])
        self._print({"sessions": shown}, text if shown else "no other session is stored")

    def _help(self, rest: str) -> None:
        self._print({"help": help_text(keys=())}, help_text(self._page.width, LINE_KEYS))

    def _quit(self, rest: str) -> None:
        self.is_over = True

    # --- prompts --------------------------------------------------------------------------------------

    def _entries(self) -> Sequence[HistoryEntry]:
        entries: list[HistoryEntry] = []
        begin: str | None = None
        while True:
            page = self._client.session_history(session_id=self._id, from_=begin)
            entries += page.entries
            if page.next is None:
                return entries
            begin = page.next

    def _echo(self, text: str) -> None:
        asked = {"role": "user", "content": text}
        self._client.call("session/append", {"session_id": self._id, "messages": [asked]})
        self._client.call("turn/begin", {"session_id": self._id}, timeout_s=MAX_EVENT_WAIT_S)
        said = {"role": "assistant", "content": text}
        self._client.call("turn/end", {"session_id": self._id, "messages": [said]})
        self._print({"echo": text}, text)

    def _prompt(self, text: str) -> bool:
        prompted = self._client.agent_prompt(session_id=self._id, text=text, timeout_s=MAX_EVENT_WAIT_S)
        self._is_answering = True
        for event in self._client.events(MAX_EVENT_WAIT_S):
            if event.session_id != self._id:
                continue
            if self._page.is_json:
                self._page.json({"event": event.fields})
            else:
                self._show(event, prompted.turn_id)
            if event.type in ("agent_end", "error") and event.fields.get("turn_id") == prompted.turn_id:
                self._is_answering = False
                return event.type == "agent_end"
        raise CommandError(
            "the model gave no answer.", hint="The session is stored; continue it with --session."
        )

    def _show(self, event: Event, own: str) -> None:
        """Print an event. `own`: the turn id of the chat's own prompt."""
        fields = event.fields
        match event.type:
            case "message_appended" if fields["role"] == "user" and fields.get("turn_id") not in (None, own):
                self._print_prompt(str(fields["entry_id"]), str(fields.get("client") or "another program"))
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

    def _print_prompt(self, entry_id: str, client: str) -> None:
        """Print a prompt that another client sent."""
        page = self._client.session_history(session_id=self._id, from_=entry_id, limit=1)
        for piece in pieces_of(page.entries):
            if isinstance(piece, PromptPiece):
                self._page.line(f"{one_line(client)} › {piece.text}")


def _in_context(count: int) -> str:
    return f"{plural(count, 'message')} in the context"
