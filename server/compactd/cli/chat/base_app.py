"""What the chat's commands know of the app: its session, its widgets, and a few things that it can do."""

from __future__ import annotations

from abc import abstractmethod

from textual.app import App

from compactd.cli.chat.conversation import Conversation
from compactd.cli.chat.plain import Talk
from compactd.cli.chat.prompt import Prompting
from compactd.cli.framework.page import Look
from compactd.client import Event


class ChatApp(App[None]):
    """The app as its commands see it."""

    talk: Talk
    conversation: Conversation
    prompting: Prompting
    is_busy: bool
    """A prompt is being answered."""

    @abstractmethod
    async def note(self, text: str, look: Look = "") -> None:
        """Shows a line below the conversation."""

    @abstractmethod
    async def settle(self) -> None:
        """Shows the session as it is now, after it was changed."""

    @abstractmethod
    async def heard(self, event: Event) -> None:
        """Shows what an event says."""

    @abstractmethod
    async def answered(self) -> None:
        """Ends the answer that is being shown."""

    @abstractmethod
    async def show_session(self) -> None:
        """Shows another session."""

    @abstractmethod
    def action_context(self) -> None:
        """Shows or hides what fills the context."""
