"""openhands-sdk: its token count of events, its condenser's choice of events to keep, its event log."""

from __future__ import annotations

import logging
from importlib.metadata import version

from openhands.sdk.context.condenser.utils import (
    get_suffix_length_for_token_reduction,
    get_total_token_count,
)
from openhands.sdk.conversation.event_store import EventLog
from openhands.sdk.event import ActionEvent, AgentErrorEvent, LLMConvertibleEvent, MessageEvent
from openhands.sdk.io import LocalFileStore
from openhands.sdk.llm import LLM, Message, MessageToolCall, TextContent
from serving import HELD, Run, Told, blocks_of, compact, messages_in, serve, text_of

logging.disable(logging.WARNING)
_llm = LLM(model="gpt-4o", usage_id="peer", api_key="none")  # never asked


def _events(file: str) -> list[LLMConvertibleEvent]:
    """A result is an `AgentErrorEvent`: the one that shows a model its text and nothing else."""
    names: dict[object, object] = {}
    made: list[LLMConvertibleEvent] = []
    for number, message in enumerate(messages_in(file)):
        thought = [TextContent(text=text_of(message))]
        plain = True
        for block in blocks_of(message):
            if block["type"] == "text":
                continue
            plain, call_id = False, block["call_id"]
            if block["type"] == "tool_result":
                made.append(
                    AgentErrorEvent(tool_name=names[call_id], tool_call_id=call_id, error=block["content"])
                )
                continue
            names[call_id] = block["name"]
            arguments = compact(block["arguments"])
            call = MessageToolCall(id=call_id, name=names[call_id], arguments=arguments, origin="completion")
            made.append(
                ActionEvent(
                    thought=thought,
                    tool_name=names[call_id],
                    tool_call_id=call_id,
                    tool_call=call,
                    llm_response_id=f"r{number}-{call_id}",
                )
            )
        if plain:
            source = "user" if message["role"] == "user" else "agent"
            made.append(
                MessageEvent(source=source, llm_message=Message(role=message["role"], content=thought))
            )
    return made


def count(file: str, keep: int) -> Run:
    """The events as messages, counted by litellm."""
    events = _events(file)

    def run() -> Told:
        return {"tokens": get_total_token_count(events, _llm)}

    return run


def plan(file: str, keep: int) -> Run:
    """Time finding how many of the newest events to keep, so that about `keep` tokens stay."""
    events = _events(file)
    total = get_total_token_count(events, _llm)

    def run() -> Told:
        suffix = get_suffix_length_for_token_reduction(events, _llm, total - keep)
        return {"messages": len(events) - suffix}

    return run


def load(folder: str, keep: int) -> Run:
    """All of its event log, which reads a file an event."""

    def run() -> Told:
        events = list(EventLog(LocalFileStore(folder)))
        return {"messages": len(events), HELD: events}

    return run


def store(file: str, folder: str) -> None:
    """Writes it as it does."""
    log = EventLog(LocalFileStore(folder))
    for event in _events(file):
        log.append(event)


if __name__ == "__main__":
    serve({"count": count, "plan": plan, "load": load}, version("openhands-sdk"), store)
