"""The interface of the chat app that its commands use: session, widgets and a few actions."""

from __future__ import annotations

from abc import abstractmethod

from textual.app import App

from compactd.cli.chat.chat_session import ChatSession
from compactd.cli.chat.conversation import ConversationPane, PromptText
from compactd.cli.chat.prompt import PromptInput
from compactd.cli.framework.page import Look
from compactd.client import Event


class ChatApp(App[None]):
    """The app as its commands see it."""

    talk: ChatSession
    conversation: ConversationPane
    prompting: PromptInput
    is_busy: bool
    """True while a prompt is being answered."""

    @abstractmethod
    async def note(self, text: str, look: Look = "") -> None:
        """Add a message of the app itself to the end of the conversation."""

    @abstractmethod
    def note_sent(self, turn_id: str, prompt: PromptText) -> None:
        """Remember the widget of a prompt that the daemon has taken. It goes when the prompt is stored."""

    @abstractmethod
    async def show_stored(self) -> None:
        """Read what changed in the session, and show it."""

    @abstractmethod
    async def show_event(self, event: Event) -> None:
        """Handle an event of the session, and show what it says."""

    @abstractmethod
    async def end_answer(self) -> None:
        """Show that the answer has ended, successfully or not."""

    @abstractmethod
    async def show_session(self) -> None:
        """Show the whole session again, for example after switching to another one."""

    @abstractmethod
    def action_context(self) -> None:
        """Show or hide the context panel."""

    @abstractmethod
    def action_help(self) -> None:
        """Show the commands and keys."""
