"""google-adk: its token estimate, its choice of events to compact, and loading its session from JSON."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from google.adk.apps.compaction import (
    _estimate_prompt_token_count,
    _events_to_compact_for_token_threshold,
    _latest_prompt_token_count,
)
from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types
from serving import HELD, Run, Told, blocks_of, messages_in, serve

KEPT_SHARE = 0.02
"""The share of events to keep. google-adk keeps a number of events, so this stands for 20,000 of a million
tokens."""


def _events(file: str) -> list[Event]:
    names: dict[object, object] = {}
    made: list[Event] = []
    for number, message in enumerate(messages_in(file)):
        parts = []
        for block in blocks_of(message):
            if block["type"] == "text":
                parts.append(types.Part(text=block["text"]))
            elif block["type"] == "tool_call":
                names[block["call_id"]] = block["name"]
                call = types.FunctionCall(id=block["call_id"], name=block["name"], args=block["arguments"])
                parts.append(types.Part(function_call=call))
            else:
                answer = types.FunctionResponse(
                    id=block["call_id"], name=names[block["call_id"]], response={"result": block["content"]}
                )
                parts.append(types.Part(function_response=answer))
        role = "model" if message["role"] == "assistant" else "user"
        author = "user" if message["role"] == "user" else "agent"
        content = types.Content(role=role, parts=parts)
        made.append(
            Event(
                id=f"e{number}",
                author=author,
                content=content,
                timestamp=1_750_000_000.0 + number,
                invocation_id="i",
            )
        )
    return made


def estimate(file: str, keep: int) -> Run:
    """Time google-adk's estimate of a prompt without a usage report: characters ÷ 4 of what it would send."""
    events = _events(file)

    def run() -> Told:
        return {
            "tokens": _estimate_prompt_token_count(events=events, current_branch=None, agent_name="agent")
        }

    return run


def plan(file: str, keep: int) -> Run:
    """The check against the threshold, then the events to compact."""
    events = _events(file)
    kept = max(5, int(len(events) * KEPT_SHARE))

    def run() -> Told:
        if not _latest_prompt_token_count(events, agent_name="agent"):
            raise ValueError("it counted nothing")
        removed = _events_to_compact_for_token_threshold(events=events, event_retention_size=kept)
        return {"messages": len(removed)}

    return run


def load(file: str, keep: int) -> Run:
    """Time loading a session from the JSON that google-adk writes."""

    def run() -> Told:
        session = Session.model_validate_json(Path(file).read_bytes())
        return {"messages": len(session.events), HELD: session}

    return run


def store(file: str, to: str) -> None:
    """Writes that JSON."""
    session = Session(id="peer", app_name="peer", user_id="user", events=_events(file))
    Path(to).write_text(session.model_dump_json(), "utf-8")


if __name__ == "__main__":
    serve({"estimate": estimate, "plan": plan, "load": load}, version("google-adk"), store)
