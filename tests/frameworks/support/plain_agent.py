"""The smallest agent loop, for tests of the provider and of the laws: it sends its whole history each
time."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import signature
from typing import Any

import httpx

from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.talk import TOOLS
from tests.support.loopback.writing import Json

Edit = Callable[[list[Json]], list[Json]]
Tools = dict[str, Callable[..., str]]
BY_NAME: Tools = {tool.__name__: tool for tool in TOOLS}
TYPES = {"number": "integer", "query": "string"}


class Refused(Exception):
    """The provider refused a request."""


def run(provider: Provider, wire: str = "openai", edit: Edit = list, tools: Tools = BY_NAME) -> list[Json]:
    """Have the whole conversation, and return the messages. `edit` changes a copy of them for each
    request."""
    loop = LOOPS[wire](provider, tools)
    messages: list[Json] = []
    with httpx.Client(timeout=30) as client:
        for request in provider.asks():
            messages.append({"role": "user", "content": request})
            while True:
                sent = client.post(loop.url, json=loop.body(edit(list(messages))))
                if sent.status_code != 200:
                    raise Refused(sent.text)
                said, calls = loop.read(sent.json())
                messages += said
                if not calls:
                    break
                messages += loop.results(calls)
    return messages


class Chat:
    def __init__(self, provider: Provider, tools: Tools = BY_NAME) -> None:
        self.tools = tools
        self.url = f"{provider.openai_url}/chat/completions"
        self.system = provider.talk.system

    def body(self, messages: list[Json]) -> Json:
        tools = [
            {
                "type": "function",
                "function": {"name": name, "description": tool.__doc__, "parameters": schema(tool)},
            }
            for name, tool in self.tools.items()
        ]
        return {
            "model": MODEL,
            "messages": [{"role": "system", "content": self.system}, *messages],
            "tools": tools,
        }

    def read(self, answer: Json) -> tuple[list[Json], list[Any]]:
        message = answer["choices"][0]["message"]
        return [message], message.get("tool_calls") or []

    def results(self, calls: list[Any]) -> list[Json]:
        return [
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": self.tools[call["function"]["name"]](**json.loads(call["function"]["arguments"])),
            }
            for call in calls
        ]


class Responses:
    def __init__(self, provider: Provider, tools: Tools = BY_NAME) -> None:
        self.tools = tools
        self.url = f"{provider.openai_url}/responses"
        self.system = provider.talk.system

    def body(self, messages: list[Json]) -> Json:
        tools = [
            {"type": "function", "name": name, "description": tool.__doc__, "parameters": schema(tool)}
            for name, tool in self.tools.items()
        ]
        return {"model": MODEL, "instructions": self.system, "input": messages, "tools": tools}

    def read(self, answer: Json) -> tuple[list[Json], list[Any]]:
        output = answer["output"]
        return output, [item for item in output if item["type"] == "function_call"]

    def results(self, calls: list[Any]) -> list[Json]:
        return [
            {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": self.tools[call["name"]](**json.loads(call["arguments"])),
            }
            for call in calls
        ]


class Messages:
    def __init__(self, provider: Provider, tools: Tools = BY_NAME) -> None:
        self.tools = tools
        self.url = f"{provider.anthropic_url}/v1/messages"
        self.system = provider.talk.system

    def body(self, messages: list[Json]) -> Json:
        tools = [
            {"name": name, "description": tool.__doc__, "input_schema": schema(tool)}
            for name, tool in self.tools.items()
        ]
        return {
            "model": MODEL,
            "max_tokens": 500,
            "system": self.system,
            "messages": messages,
            "tools": tools,
        }

    def read(self, answer: Json) -> tuple[list[Json], list[Any]]:
        content = answer["content"]
        said = {"role": "assistant", "content": content}
        return [said], [block for block in content if block["type"] == "tool_use"]

    def results(self, calls: list[Any]) -> list[Json]:
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": self.tools[call["name"]](**call["input"]),
            }
            for call in calls
        ]
        return [{"role": "user", "content": blocks}]


class Generate:
    def __init__(self, provider: Provider, tools: Tools = BY_NAME) -> None:
        self.tools = tools
        self.url = f"{provider.gemini_url}/v1beta/models/{MODEL}:generateContent"
        self.system = provider.talk.system

    def body(self, messages: list[Json]) -> Json:
        tools = [
            {"name": name, "description": tool.__doc__, "parameters": schema(tool)}
            for name, tool in self.tools.items()
        ]
        return {
            "systemInstruction": {"parts": [{"text": self.system}]},
            "contents": [
                {"role": message["role"], "parts": [{"text": message["content"]}]}
                if "content" in message
                else message
                for message in messages
            ],
            "tools": [{"functionDeclarations": tools}],
        }

    def read(self, answer: Json) -> tuple[list[Json], list[Any]]:
        content = answer["candidates"][0]["content"]
        return [content], [part["functionCall"] for part in content["parts"] if "functionCall" in part]

    def results(self, calls: list[Any]) -> list[Json]:
        parts = [
            {
                "functionResponse": {
                    "name": call["name"],
                    "response": {"result": self.tools[call["name"]](**call["args"])},
                }
            }
            for call in calls
        ]
        return [{"role": "user", "parts": parts}]


def schema(tool: Callable[..., str]) -> Json:
    """Return the JSON schema of a tool's parameters."""
    names = list(signature(tool).parameters)
    return {
        "type": "object",
        "properties": {name: {"type": TYPES[name]} for name in names},
        "required": names,
    }


LOOPS: dict[str, type[Chat] | type[Responses] | type[Messages] | type[Generate]] = {
    "openai": Chat,
    "openai_responses": Responses,
    "anthropic": Messages,
    "gemini": Generate,
}
