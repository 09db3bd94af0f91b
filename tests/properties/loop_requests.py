"""Finds what a real provider would refuse in the requests that the loopback server received."""

from __future__ import annotations

import json
from typing import Any

from tests.support.loopback import Seen
from tests.support.rules import anthropic_messages, gemini_contents, openai_chat, openai_responses

Json = dict[str, Any]


def problems_of(seen: Seen) -> list[str]:
    """Return what the API of the request's wire format would refuse with 400; empty for a valid request."""
    body = seen.body
    tools = body.get("tools")
    match seen.wire:
        case "openai":
            return openai_chat.problems(body["messages"], tools)
        case "openai_responses":
            return openai_responses.problems(body["input"], body.get("instructions"), tools)
        case "anthropic":
            system = body.get("system")
            said = system if system is None or isinstance(system, str) else _texts(system)
            return anthropic_messages.problems(body["messages"], said, tools, takes_prefill=False)
        case "gemini":
            given = body.get("systemInstruction")
            return gemini_contents.problems(
                body["contents"], None if given is None else _texts(given["parts"]), tools
            )
        case "ollama":
            return openai_chat.problems(_as_chat(body["messages"]), tools)
        case _:
            return [f"no provider has the path {seen.path}"]


def is_summary(seen: Seen) -> bool:
    """Return whether the request asks for a summary and so does not belong to the conversation."""
    return b"<conversation>" in seen.raw


def _texts(parts: list[Json]) -> str:
    return "".join(part["text"] for part in parts)


def _as_chat(messages: list[Json]) -> list[Json]:
    """Ollama's messages in OpenAI's shape: its calls have no ids, so each result answers the oldest open call
    of its name."""
    made: list[Json] = []
    waiting: list[tuple[str, str]] = []
    for index, message in enumerate(messages):
        chat = {"role": message["role"], "content": message["content"]}
        if message.get("tool_calls"):
            named = [call["function"] for call in message["tool_calls"]]
            waiting = [(f"c{index}_{at}", function["name"]) for at, function in enumerate(named)]
            chat["tool_calls"] = [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": function["name"], "arguments": json.dumps(function["arguments"])},
                }
                for (id, _), function in zip(waiting, named, strict=True)
            ]
            chat["content"] = message["content"] or None
        if message["role"] == "tool":
            open_call = next((call for call in waiting if call[1] == message["tool_name"]), ("nobody", ""))
            waiting = [call for call in waiting if call is not open_call]
            chat["tool_call_id"] = open_call[0]
        made.append(chat)
    return made
