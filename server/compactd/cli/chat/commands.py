"""The commands of the chat app, such as `/compact` and `/undo`. Errors are shown in the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import time

from compactd.cli.chat.base_app import ChatApp
from compactd.cli.chat.chat_session import COMPACTION_TIMEOUT_S
from compactd.cli.chat.conversation import QuietLine
from compactd.cli.chat.input import OwnCommand, compact_params, no_compaction_text, split_sessions
from compactd.cli.chat.picker import Picker
from compactd.cli.chat.pieces import rule_text, titles, turn_ends
from compactd.cli.framework.exit_codes import last_log_line
from compactd.cli.framework.page import Look, one_line, plural
from compactd.cli.framework.session_rows import session_line, shown_sessions
from compactd.cli.inspect.markup import short
from compactd.client import DaemonGone, RpcError
from compactd.protocol.messages import CompactionResult
from compactd.protocol.wire import BranchResult, UndoResult

MAX_SHOWN_HITS = 20


def error_line(error: Exception) -> tuple[str, Look]:
    """Return (one or two lines that describe `error`, their colour)."""
    if isinstance(error, RpcError):
        return f"{error.message} ({error.code})", "bad"
    if isinstance(error, DaemonGone):
        return f"{error}.\n{last_log_line(error.stderr)}", "bad"
    return f"{error}.", "bad"


class CommandRunner:
    """The actions of the chat app: they carry out the user's commands and prompts."""

    def __init__(self, app: ChatApp) -> None:
        self._app = app
        self.is_stopped = False
        """True if the user has stopped the prompt that is being answered."""
        self._asking = 0
        self.all_taken = asyncio.Event()
        """Set unless a prompt was sent that the daemon has not taken yet."""
        self.all_taken.set()
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/compact": self._compact,
            "/undo": lambda rest: self.undo(None),
            "/redo": self._redo,
            "/branch": self._branch,
            "/context": self._context,
            "/model": self._model,
            "/search": self._search,
            "/sessions": self._sessions,
            "/help": self._help,
            "/quit": self._quit,
        }

    async def run(self, own: OwnCommand) -> None:
        """Execute one of the chat's own commands."""
        self._app.conversation.anchor()
        try:
            await self._commands[own.name](own.rest)
        except ValueError as error:
            await self._app.note(str(error), "bad")
        except (RpcError, DaemonGone, TimeoutError) as error:
            text, look = error_line(error)
            await self._app.note(f"compaction failed: {text}" if own.name == "/compact" else text, look)

    async def prompt(self, text: str) -> None:
        """Send a prompt to the model. The answer arrives as events."""
        app = self._app
        prompt = await app.conversation.add_prompt(text)
        app.is_busy, self.is_stopped = True, False
        try:
            turn_id = await self._send(text)
        except (RpcError, DaemonGone, TimeoutError) as error:
            await prompt.remove()
            await app.end_answer()
            await app.note(*error_line(error))
            app.prompting.fill(app.prompting.text or text)
        except asyncio.CancelledError:
            # The user stopped the prompt. Closing the app cancels it, too, but then nothing is shown.
            if self.is_stopped:
                await prompt.remove()
                await app.end_answer()
                await app.note("stopped")
            raise
        else:
            if turn_id is None:
                await prompt.remove()
                await app.end_answer()
            else:
                app.note_sent(turn_id, prompt)

    async def _send(self, text: str) -> str | None:
        self._asking += 1
        self.all_taken.clear()
        try:
            return await self._app.talk.prompt(text, self._app.show_event)
        finally:
            self._asking -= 1
            if not self._asking:
                # In the next step of the event loop, because the caller notes the prompt before.
                asyncio.get_running_loop().call_soon(self._note_taken)

    def _note_taken(self) -> None:
        if not self._asking:
            self.all_taken.set()

    async def abort(self) -> None:
        """Stop the answer of the model."""
        try:
            await self._app.talk.client.agent_abort(session_id=self._app.talk.id)
        except (RpcError, DaemonGone, TimeoutError) as error:
            await self._app.note(*error_line(error))

    async def undo(self, result: CompactionResult | None) -> None:
        """Undo the compaction `result`, but only if no compaction is newer. Without `result`, undo the newest
        compaction or prune.
        """
        app = self._app
        app.conversation.anchor()
        newest = app.talk.newest_compaction()
        if result is not None and (newest is None or newest.compaction_id != result.compaction_id):
            await app.note("only the newest compaction can be undone; use /undo", "bad")
            return
        try:
            done = await app.talk.client.session_undo(session_id=app.talk.id)
        except (RpcError, DaemonGone, TimeoutError) as error:
            await app.note(*error_line(error))
            return
        await app.show_stored()
        await app.note(f"undone: {_in_context(done)} · /redo")

    # --- one method per command -----------------------------------------------------------------------

    async def _compact(self, rest: str) -> None:
        app = self._app
        params = compact_params(rest)
        result = await app.talk.compact(params)
        if result.compacted:
            await app.show_stored()
        else:
            smallest = None if "keep_messages" in params else await app.talk.plan_smallest()
            await app.note(no_compaction_text(result.reason, smallest))

    async def _redo(self, rest: str) -> None:
        done = await self._app.talk.client.session_redo(session_id=self._app.talk.id)
        await self._app.show_stored()
        await self._app.note(f"redone: {_in_context(done)} · /undo")

    async def _branch(self, rest: str) -> None:
        app = self._app
        left = app.talk.read_left_behind()
        entries = [entry for entry in app.talk.entries.values() if entry.entry_id not in left]
        ends = turn_ends(entries)
        if not ends:
            await app.note("there is no earlier point to branch from yet")
            return
        names = titles(entries)
        choices = [(end, f"after: {names[begin]}") for begin, end in reversed(ends)]
        picked: str | None = rest
        if not rest:
            picked = await app.push_screen_wait(Picker("continue from an earlier point", choices))
        if picked is None or picked == ends[-1][1]:
            return
        done = await app.talk.client.session_branch(session_id=app.talk.id, entry_id=picked)
        await app.show_stored()
        await app.note(f"on a new branch: {_in_context(done)}")

    async def _context(self, rest: str) -> None:
        self._app.action_context()

    async def _model(self, rest: str) -> None:
        app = self._app
        if not rest:
            await app.note(f"the model is {app.talk.state.model or 'not set'}; /model PROVIDER/ID changes it")
            return
        done = await app.talk.client.model_set(
            session_id=app.talk.id, model=rest, timeout_s=COMPACTION_TIMEOUT_S
        )
        await app.show_stored()
        made = "" if done.compaction is None else f" · {rule_text(done.compaction)}"
        window = done.token_usage.context_window
        await app.note(f"the model is {done.model}, window {short(window) if window else 'unknown'}{made}")

    async def _search(self, rest: str) -> None:
        app = self._app
        if not rest:
            raise ValueError("/search needs words to search for, for example: /search timeout")
        hits = (await app.talk.client.session_search(session_id=app.talk.id, query=rest)).hits
        lines = [f"{plural(len(hits), 'message')} with “{rest}”" + ("" if hits else " in this session")]
        for hit in hits[:MAX_SHOWN_HITS]:
            where = "" if hit.in_context else " · compacted"
            lines.append(f"  {hit.role} {hit.entry_id}{where} · {one_line(hit.snippet)}")
        await app.conversation.add_widgets(QuietLine("\n".join(lines), "rows"))

    async def _sessions(self, rest: str) -> None:
        app = self._app
        if app.is_busy:
            await app.note("wait for the answer, or stop it with Esc", "bad")
            return
        name, shows_empty = split_sessions(rest)
        picked: str | None = name
        if not name:
            stored = (await app.talk.client.session_list()).sessions
            shown = shown_sessions(stored, shows_empty=shows_empty, here=app.talk.id)
            now = time()
            choices = [(one.session_id, session_line(one, now)) for one in shown]
            if not choices:
                await app.note("no other session is stored")
                return
            picked = await app.push_screen_wait(Picker("continue another session", choices))
        if picked:
            await app.talk.switch(picked)
            await app.show_session()

    async def _help(self, rest: str) -> None:
        self._app.action_help()

    async def _quit(self, rest: str) -> None:
        self._app.exit()


def _in_context(done: UndoResult | BranchResult) -> str:
    return f"{plural(done.message_count, 'message')} in the context"
