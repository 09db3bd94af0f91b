"""OpenAI's rules for a chat request.

From the API reference ("Create chat completion"), the vision guide (both seen 2026-11) and the texts of its
400 answers: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
'tool_call_id'", "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
"string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'", "Expected a
string with maximum length 40", "object schema missing properties", "Invalid content type", "Expected a
base64-encoded data URL with an application/pdf MIME type".
"""

from __future__ import annotations

import re

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
IMAGE = re.compile(r"https?://|data:image/(png|jpeg|gif|webp);base64,")
PDF = "data:application/pdf;base64,"
ROLES = ("system", "developer", "user", "assistant", "tool")
PARTS_OF = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}


def problems(messages: list[dict], tools: list[dict] | None = None) -> list[str]:
    """Return what the API would refuse; empty for a valid request."""
    found: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = message.get("role")
        if role not in ROLES:
            found.append(f"{where}: role {role!r}")
            continue
        if role == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                found.append(f"{where}: no call {message.get('tool_call_id')!r} waits for a result")
        elif waiting:
            found.append(f"{where}: calls {waiting} have no result before it")
            waiting = []
        found += _content(message, where)
        if role == "assistant":
            found += _calls(message, where, seen)
            waiting = [call.get("id", "") for call in message.get("tool_calls", [])]
        elif "tool_calls" in message:
            found.append(f"{where}: tool_calls in a {role} message")
    if waiting:
        found.append(f"at the end: calls {waiting} have no result")
    return found + _tools(tools)


def _content(message: dict, where: str) -> list[str]:
    role, content = message["role"], message.get("content")
    if content is None:
        if role == "assistant" and message.get("tool_calls"):
            return []
        return [f"{where}: no content"]
    if isinstance(content, str):
        return [] if content or role == "tool" else [f"{where}: empty content"]
    if not isinstance(content, list) or not content:
        return [f"{where}: content is {content!r}"]
    found = []
    for at, part in enumerate(content):
        place = f"{where}.content[{at}]"
        kind = part.get("type")
        if kind not in PARTS_OF[role]:
            found.append(f"{place}: a part of type {kind!r} in a {role} message")
        elif kind == "text" and not (isinstance(part.get("text"), str) and part["text"]):
            found.append(f"{place}: empty text")
        elif kind == "image_url" and not IMAGE.match(part["image_url"]["url"]):
            found.append(f"{place}: image url")
        elif kind == "file" and not ({"file_data", "file_id"} & set(part.get("file", ()))):
            found.append(f"{place}: file without data")
        elif kind == "file" and not part["file"].get("file_data", PDF).startswith(PDF):
            found.append(f"{place}: a file that is no pdf")
    return found


def _calls(message: dict, where: str, seen: set[str]) -> list[str]:
    if "tool_calls" not in message:
        return []
    if not message["tool_calls"]:
        return [f"{where}: tool_calls is empty"]
    found = []
    for at, call in enumerate(message["tool_calls"]):
        place = f"{where}.tool_calls[{at}]"
        function = call.get("function", {})
        if call.get("type") != "function":
            found.append(f"{place}: type {call.get('type')!r}")
        if not isinstance(call.get("id"), str) or not 0 < len(call["id"]) <= 40:
            found.append(f"{place}: id {call.get('id')!r}")
        elif call["id"] in seen:
            found.append(f"{place}: id {call['id']!r} comes twice")
        seen.add(call.get("id", ""))
        if not NAME.fullmatch(function.get("name", "")):
            found.append(f"{place}: name {function.get('name')!r}")
        if not isinstance(function.get("arguments"), str):
            found.append(f"{place}: arguments are no string")
    return found


def _tools(tools: list[dict] | None) -> list[str]:
    if tools is None:
        return []
    if not tools:
        return ["tools is empty"]
    found = []
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) != len(names):
        found.append(f"tool names {names} are not unique")
    for tool in tools:
        function = tool["function"]
        if tool.get("type") != "function" or not NAME.fullmatch(function["name"]):
            found.append(f"tool {function['name']!r}")
        parameters = function.get("parameters")
        if parameters.get("type") != "object" or "properties" not in parameters:
            found.append(f"tool {function['name']!r}: parameters {parameters!r}")
    return found
