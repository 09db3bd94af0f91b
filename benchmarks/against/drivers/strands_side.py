"""strands-agents: its token estimate, split point, sliding window, and session with one file per message."""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace

from serving import HELD, Run, Told, blocks_of, messages_in, serve
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.agent.conversation_manager.summarizing_conversation_manager import (
    SummarizingConversationManager,
)
from strands.models.model import _estimate_tokens_with_heuristic
from strands.session.file_session_manager import FileSessionManager
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

KEPT_SHARE = 0.02
"""The share of messages in the window. strands counts messages, not tokens, so this stands for 20,000 of a
million tokens."""


def _messages(file: str) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for message in messages_in(file):
        content: list[dict[str, object]] = []
        for block in blocks_of(message):
            if block["type"] == "text":
                content.append({"text": block["text"]})
            elif block["type"] == "tool_call":
                use = {"toolUseId": block["call_id"], "name": block["name"], "input": block["arguments"]}
                content.append({"toolUse": use})
            else:
                text = [{"text": block["content"]}]
                result = {"toolUseId": block["call_id"], "status": "success", "content": text}
                content.append({"toolResult": result})
        role = "assistant" if message["role"] == "assistant" else "user"
        made.append({"role": role, "content": content})
    return made


def estimate(file: str, keep: int) -> Run:
    """The heuristic that its models count with where they have no tokenizer."""
    messages = _messages(file)

    def run() -> Told:
        return {"tokens": _estimate_tokens_with_heuristic(messages)}

    return run


def cut(file: str, keep: int) -> Run:
    """A share of the messages, moved until no pair is torn: it looks at no tokens."""
    messages, manager = _messages(file), SummarizingConversationManager(summary_ratio=0.8)

    def run() -> Told:
        return {"cut": manager._adjust_split_point_for_tool_pairs(messages, int(len(messages) * 0.8))}

    return run


def window(file: str, keep: int) -> Run:
    """Time dropping the oldest messages, without a model."""
    messages = _messages(file)
    manager = SlidingWindowConversationManager(window_size=max(10, int(len(messages) * KEPT_SHARE)))

    def run() -> Told:
        agent = SimpleNamespace(messages=list(messages))
        manager.reduce_context(agent)
        return {"tokens": _estimate_tokens_with_heuristic(agent.messages)}

    return run


def load(folder: str, keep: int) -> Run:
    """Time loading a session with strands' own session manager from its own files."""

    def run() -> Told:
        messages = FileSessionManager("peer", folder).list_messages("peer", "agent")
        return {"messages": len(messages), HELD: messages}

    return run


def store(file: str, folder: str) -> None:
    """Writes them as it does."""
    manager = FileSessionManager("peer", folder)
    if manager.read_session("peer") is None:
        manager.create_session(Session(session_id="peer", session_type=SessionType.AGENT))
    manager.create_agent("peer", SessionAgent(agent_id="agent", state={}, conversation_manager_state={}))
    for number, message in enumerate(_messages(file)):
        manager.create_message("peer", "agent", SessionMessage(message, number))


if __name__ == "__main__":
    serve({"estimate": estimate, "cut": cut, "trim": window, "load": load}, version("strands-agents"), store)
