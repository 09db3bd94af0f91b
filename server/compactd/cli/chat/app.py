"""The chat app: shows the daemon's events, and turns the user's input into requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Key, Resize
from textual.screen import ModalScreen
from textual.widgets import TextArea
from textual.worker import Worker

from compactd.cli.chat.base_app import ChatApp
from compactd.cli.chat.chat_session import CLIENT, ChatSession
from compactd.cli.chat.commands import CommandRunner, error_line
from compactd.cli.chat.conversation import ConversationPane, PromptText, Welcome
from compactd.cli.chat.folds import Rule
from compactd.cli.chat.gauge import gauge_look
from compactd.cli.chat.input import parse_own_command
from compactd.cli.chat.overlays import ContextScreen, HelpScreen, Overlay
from compactd.cli.chat.panel import Panel
from compactd.cli.chat.pieces import escape_controls, pieces_of
from compactd.cli.chat.prompt import Hints, PromptInput
from compactd.cli.chat.status_bar import RunningCompaction, StatusBar
from compactd.cli.chat.styles import DARK, LIGHT
from compactd.cli.chat.welcome import welcome_texts
from compactd.cli.framework.exit_codes import INTERRUPTED
from compactd.cli.framework.page import Look, one_line
from compactd.client import DaemonGone, Event, RpcError
from compactd.client.events import RESUMED
from compactd.protocol.messages import CompactionProgress, CompactionStart, TokenUsage

ROOM_FOR_PANEL = 110
"""The least number of columns at which the context panel is next to the conversation."""

PING_INTERVAL_S = 2.0
"""Seconds between two checks that the daemon still runs, while an answer from it is expected."""

KEYS = ("? keys · Esc stops · Ctrl-C twice quits", "? keys · Ctrl-C twice quits", "? keys")
AGAIN = ("Ctrl-C again quits",)


class Chat(ChatApp):
    """The full-screen chat app. `talk`: a session that is already open."""

    TITLE = "compactd chat"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    ConversationPane, Panel, PromptInput, OptionList {
        scrollbar-color: $quiet; scrollbar-background: $background;
        scrollbar-background-hover: $background; scrollbar-background-active: $background;
    }
    #main { height: 1fr; }
    #left { width: 1fr; }
    #left > ConversationPane { height: 1fr; }
    #main > Panel { width: 32%; min-width: 48; max-width: 64; }
    StatusBar { dock: bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("escape", "stop", show=False),
        Binding("ctrl+d", "leave_empty", show=False, priority=True),
        Binding("ctrl+t", "context", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("ctrl+up,ctrl+p", "jump(-1)", show=False, priority=True),
        Binding("ctrl+down,ctrl+n", "jump(1)", show=False, priority=True),
        Binding("ctrl+o", "toggle_folds", show=False, priority=True),
    ]

    def __init__(self, talk: ChatSession, *, theme: str = DARK.name, look_s: float = PING_INTERVAL_S) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = theme
        self.talk = talk
        self.conversation = ConversationPane()
        self.panel = Panel()
        self.prompting = PromptInput()
        self.is_busy = False
        """True while a prompt is being answered."""
        self._look_s = look_s
        self._progress = RunningCompaction()
        self._standing = StatusBar()
        self._hints = Hints()
        self._doing = CommandRunner(self)
        self._asking: Worker[None] | None = None
        self._settling = asyncio.Lock()
        self._left: frozenset[str] = frozenset()
        self._sent: dict[str, PromptText] = {}
        self.is_compacting = False
        """True while a compaction is running."""
        self._trigger = ""
        self._is_leaving = False
        self._wants_panel = True
        self._is_gone = False

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return a value of the variable `quiet` for textual's own themes, which do not set it."""
        return {"quiet": "#808080"}

    def compose(self) -> ComposeResult:
        """Yield the conversation, the context panel next to it, and the status bar below."""
        with Horizontal(id="main"):
            with Vertical(id="left"):
                yield self.conversation
                yield self._progress
                yield self._hints
                yield self.prompting
            yield self.panel
        yield self._standing

    async def on_mount(self) -> None:
        """Show the session and start to listen for events."""
        self._place_panel()
        self.prompting.focus()
        await self.show_session()
        self.run_worker(self._listen(), name="events")
        self.set_interval(self._look_s, self._ping_daemon)

    # --- display --------------------------------------------------------------------------------------

    async def show_session(self) -> None:
        """Show the whole session as it was last read."""
        self._left = self.talk.read_left_behind()
        pieces = tuple(pieces_of(self.talk.entries.values(), self._left, self.talk.authors))
        await self.conversation.show(pieces, Welcome(self._welcome_texts()))
        for warning in self.talk.started.warnings:
            await self.conversation.note(warning, "due")
        if self.talk.started.read_only:
            await self.conversation.note(
                "read only: another process has this session open. Its changes are shown here. To write,"
                " end that process and open the session again.",
                "due",
            )
        self._set_busy(self.talk.state.status in ("running", "streaming", "executing_tools"))
        await self._update_widgets()

    async def show_stored(self, *, is_anew: bool = False) -> None:
        """Read the new entries of the session, and show them instead of the text that was streamed. With
        `is_anew`, read and show all entries again.
        """
        async with self._settling:
            if not self.conversation.is_attached:
                return
            newest = self.talk.newest
            try:
                is_changed = await self.talk.refresh(is_anew=is_anew)
            except (RpcError, DaemonGone, TimeoutError) as error:
                await self.note(*error_line(error))
                return
            left = self.talk.read_left_behind()
            if is_anew or (is_changed and left != self._left):
                await self.show_session()
                return
            self._left = left
            entries = tuple(self.talk.entries.values())
            begin = next((at + 1 for at, e in enumerate(entries) if e.entry_id == newest), 0)
            await self.conversation.add(pieces_of(entries[begin:], left, self.talk.authors))
            self.conversation.mark_in_force(
                [str(e.compaction.compaction_id) for e in entries if e.compaction and e.in_context]
            )
        await self._update_widgets()

    def note_sent(self, turn_id: str, prompt: PromptText) -> None:
        """Remember the widget of a prompt that the daemon has taken. It goes when the prompt is stored."""
        self._sent[turn_id] = prompt

    async def note(self, text: str, look: Look = "") -> None:
        """Add a message of the app itself to the end of the conversation."""
        await self.conversation.note(text, look)

    async def _update_widgets(self) -> None:
        if not self.conversation.is_attached:
            return
        self._update_status_bar()
        self.conversation.show_welcome(self._welcome_texts())
        if self.panel.display:
            await self.panel.show_state(self.talk)
        if self.screen_stack and isinstance(self.screen, ContextScreen):
            await self.screen.show_state()

    def _welcome_texts(self) -> Sequence[str]:
        return welcome_texts(self.talk.state.model, is_echo=self.talk.is_echo)

    def _update_status_bar(self) -> None:
        state = self.talk.state
        model = state.model or "no model"
        self._standing.show_state(
            model=f"echo ({model})" if self.talk.is_echo else model,
            usage=self.talk.usage,
            look=gauge_look(self.talk.usage),
            dollars=self.talk.dollars,
            doing="compacting" if self.is_compacting else "answering" if self.is_busy else "",
            read_only=self.talk.started.read_only,
            keys=AGAIN if self._is_leaving else KEYS,
        )

    # --- events from the daemon -----------------------------------------------------------------------

    async def _listen(self) -> None:
        async for event in self.talk.client.events():
            if event.session_id == self.talk.id:
                await self.show_event(event)

    async def show_event(self, event: Event) -> None:
        """Handle one event of the session."""
        fields, conversation = event.fields, self.conversation
        match event.type:
            case "agent_start":
                self._set_busy(True)
            case "message_appended":
                await self._show_appended(event)
            case "message_delta":
                await conversation.add_text(str(fields["delta"]))
            case "thinking_delta":
                await conversation.add_thinking(str(fields["delta"]))
            case "message_end":
                conversation.end_answer()
            case "tool_execution_start":
                await conversation.add_call(str(fields["call_id"]), str(fields["name"]))
            case "retry":
                text = f"{fields['reason']}; trying again in {fields['delay_s']:g} s"
                await conversation.note(text, "due", is_passing=True)
            case "overflow_detected":
                text = "the request was too large for the model"
                await conversation.note(text, "due", is_passing=True)
            case "agent_end":
                await self.end_answer()
                if fields.get("stop_reason") == "aborted":
                    await self.note("stopped; the text so far is kept")
            case "error":
                await self.end_answer()
                await self.note(f"{fields['message']} ({fields['code']})", "bad")
            case "compaction_start" | "compaction_progress" | "compaction_end":
                await self._show_compaction_event(event)
            case "usage_update":
                self.talk.usage = msgspec.convert(fields["usage"], TokenUsage)
                await self._show_changed_view(_name_of_other(event))
            case "model_changed":
                await self._show_stored_if_idle()
            case "events_dropped":
                await self.talk.client.session_subscribe(session_id=self.talk.id)
                await self._show_again()
            case kind if kind == RESUMED:
                self._set_compacting(False)
                await self._show_again()
                await self.note(
                    "the daemon stopped and was restarted. Nothing that it had stored is lost. If an answer"
                    " was interrupted, ask again.",
                    "due",
                )
            case "session_closed":
                await self.note(f"the session was closed: {fields['reason']}", "due")
            case _:
                pass

    async def _show_appended(self, event: Event) -> None:
        """Show a prompt that is stored now, of this chat or of another client of the session."""
        fields, sent = event.fields, None
        turn_id = fields.get("turn_id")
        if fields["role"] != "user" or self.talk.is_echo:
            return
        if isinstance(turn_id, str):
            if turn_id not in self._sent:
                # The daemon's answer to a prompt of this chat may follow.
                await self._doing.all_taken.wait()
            sent = self._sent.pop(turn_id, None)
        elif self.is_busy:
            return  # it is shown at the end of the answer
        if sent is None and fields.get("client") != CLIENT["name"]:
            self.talk.authors[str(fields["entry_id"])] = str(fields.get("client") or "another program")
        await self.show_stored()
        if sent is not None:
            await sent.remove()

    async def _show_again(self) -> None:
        """Read and show the whole session again, because events were missed."""
        await self.show_stored(is_anew=True)
        waiting = {prompt.prompt_id for prompt in self.talk.state.prompts}
        for turn_id in [turn_id for turn_id in self._sent if turn_id not in waiting]:
            await self._sent.pop(turn_id).remove()

    async def _show_changed_view(self, other: str) -> None:
        """Show a new state of the session, and whether the client `other` undid or redid a compaction."""
        known, in_force = self.talk.compactions()
        await self._show_stored_if_idle()
        known_now, in_force_now = self.talk.compactions()
        if other and known == known_now and in_force != in_force_now:
            before, now = (known.index(one[-1]) if one else -1 for one in (in_force, in_force_now))
            await self.note(f"{other} {'redid' if now > before else 'undid'} a compaction")

    async def end_answer(self) -> None:
        """Show that the answer has ended, successfully or not."""
        self._set_busy(False)
        await self.show_stored()

    async def _show_compaction_event(self, event: Event) -> None:
        fields = event.fields
        if event.type == "compaction_start":
            start = msgspec.convert(fields, CompactionStart)
            self._trigger = start.trigger
            self._progress.begin(start.message_count, start.tokens_before)
            self._set_compacting(True)
        elif event.type == "compaction_progress":
            progress = msgspec.convert(fields, CompactionProgress)
            self._progress.show_progress(progress.fraction, progress.phase)
            if progress.delta:
                self.panel.append_summary(progress.delta)
                if not self.panel.display:
                    await self.conversation.add_summary_text(progress.delta)
        else:
            self._set_compacting(False)
            await self.show_stored()
            error, other = fields.get("error"), _name_of_other(event)
            if fields["status"] == "completed" and self._trigger == "manual" and other:
                await self.note(f"compacted by {other}")
            elif fields["status"] == "cancelled":
                await self.note("the compaction was cancelled; nothing was changed")
            elif fields["status"] == "failed" and self._trigger != "manual" and isinstance(error, dict):
                await self.note(f"a compaction failed: {error.get('message')} ({error.get('code')})", "bad")

    def _set_busy(self, is_busy: bool) -> None:
        self.is_busy = is_busy
        self._update_status_bar()

    def _set_compacting(self, is_compacting: bool) -> None:
        self.is_compacting = is_compacting
        if not is_compacting:
            self._progress.end()
            self.panel.end_summary()
        self._update_status_bar()

    async def _show_stored_if_idle(self) -> None:
        if self.is_busy:
            self._update_status_bar()
        else:
            await self.show_stored()

    async def _ping_daemon(self) -> None:
        """Ping the daemon if an answer is expected from it, because a daemon that died sends nothing. Ping it
        also if it has ended: then it is started again.
        """
        client = self.talk.client
        is_expected = self.is_busy or self.is_compacting or self.talk.started.read_only or client.is_ended
        if self._is_gone or not is_expected:
            return
        try:
            await self.talk.client.daemon_ping()
        except (RpcError, DaemonGone, TimeoutError) as error:
            self._is_gone = True
            self._set_busy(False)
            self._set_compacting(False)
            await self.note(*error_line(error))

    # --- user input -----------------------------------------------------------------------------------

    async def on_prompt_input_sent(self, sent: PromptInput.Sent) -> None:
        """Handle a prompt or a command."""
        self._hints.show_hints("")
        try:
            own = parse_own_command(sent.text)
        except ValueError as error:
            await self.note(str(error), "bad")
            return
        self._is_gone = False
        if own is None:
            self._asking = self.run_worker(self._doing.prompt(sent.text), name="prompt")
        else:
            worker = self.run_worker(self._doing.run(own), name=own.name)
            if own.name in ("/compact", "/model"):
                self._asking = worker

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Update the shown completions when the text of the prompt changes."""
        self._hints.show_hints(event.text_area.text)
        if self._is_leaving and event.text_area.text:
            self._is_leaving = False
            self._update_status_bar()

    def on_key(self, event: Key) -> None:
        """Send printable keys to the prompt, whichever widget has the focus."""
        is_there = self.prompting.has_focus or isinstance(self.screen, ModalScreen)
        if event.is_printable and event.character is not None and not is_there:
            event.stop()
            self.prompting.focus()
            self.prompting.insert(event.character)

    def on_rule_undo(self, wanted: Rule.Undo) -> None:
        """Undo a compaction after the user pressed `u` on it."""
        self.run_worker(self._doing.undo(wanted.result), name="undo")

    def on_resize(self, event: Resize) -> None:
        """Show or hide the panel according to the width."""
        self._place_panel(event.size.width)
        if self.panel.display and isinstance(self.screen, ContextScreen):
            # The panel is next to the conversation now.
            self.screen.action_leave()
        self.call_after_refresh(self._update_widgets)

    def _place_panel(self, width: int | None = None) -> None:
        self.panel.display = self._wants_panel and (width or self.size.width) >= ROOM_FOR_PANEL

    def on_prompt_input_help_wanted(self) -> None:
        """Show the commands and keys after `?` in an empty prompt."""
        self.action_help()

    def action_help(self) -> None:
        """Show the commands and keys."""
        if not isinstance(self.screen, ModalScreen):
            self.push_screen(HelpScreen(self._type_text))

    def _type_text(self, text: str) -> None:
        self.prompting.insert(escape_controls(text))

    async def action_stop(self) -> None:
        """Stop the running answer or compaction; if neither is running, move the focus to the prompt."""
        self._is_leaving = False
        if self.is_busy or self.is_compacting:
            self.run_worker(self._stop(), name="stop")
        else:
            self.prompting.focus()
        self._update_status_bar()

    async def _stop(self) -> None:
        if self.is_busy and not self.talk.is_echo:
            await self._doing.abort()
        elif self._asking is not None:
            # Cancelling the task cancels the request.
            self._doing.is_stopped = True
            self._asking.cancel()

    async def action_interrupt(self) -> None:
        """Copy the selected text, close a list, or stop what is running and empty the prompt. A second Ctrl-C
        quits.
        """
        marked = self.screen.get_selected_text()
        if marked:
            self.copy_to_clipboard(marked)
            self.screen.clear_selection()
        elif isinstance(self.screen, Overlay):
            self.screen.action_leave()
        elif isinstance(self.screen, ModalScreen):
            self.screen.dismiss(None)
        elif self._is_leaving:
            self.exit(return_code=INTERRUPTED)
        else:
            await self.action_stop()
            self.prompting.take_text()
            self._is_leaving = True
            self._update_status_bar()

    def action_leave_empty(self) -> None:
        """Quit with Ctrl-D if the prompt is empty."""
        if not self.prompting.text and not isinstance(self.screen, ModalScreen):
            self.exit()

    def action_context(self) -> None:
        """Show or hide the context panel."""
        if isinstance(self.screen, ContextScreen):
            self.screen.action_leave()
        elif isinstance(self.screen, ModalScreen):
            return
        elif self.size.width >= ROOM_FOR_PANEL:
            self._wants_panel = not self._wants_panel
            self._place_panel()
            self.call_after_refresh(self._update_widgets)
        else:
            self.push_screen(ContextScreen(self.talk, self._type_text))

    def action_page(self, step: int) -> None:
        """Scroll the visible text by one page: up if `step` is negative, otherwise down."""
        if isinstance(self.screen, Overlay):
            self.screen.action_scroll_page(step)
        elif step < 0:
            self.conversation.scroll_page_up(animate=False)
        else:
            self.conversation.scroll_page_down(animate=False)

    def action_jump(self, step: int) -> None:
        """Go to the previous message if `step` is -1, or to the next one if it is 1. After the last message
        comes the prompt.
        """
        if not isinstance(self.screen, ModalScreen) and not self.conversation.jump(step):
            self.prompting.focus()
            self.conversation.anchor()

    async def action_toggle_folds(self) -> None:
        """Open all entries of the conversation, or close them."""
        if not isinstance(self.screen, ModalScreen):
            await self.conversation.toggle_folds()


def _name_of_other(event: Event) -> str:
    """Return the name of the other client that caused an event; empty if it was this one or is not known."""
    name = event.fields.get("client")
    return one_line(name) if isinstance(name, str) and name != CLIENT["name"] else ""
