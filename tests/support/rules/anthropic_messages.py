"""Anthropic's rules for a request to the Messages API.

From the API reference ("Create a message"), the guides to tool use and extended thinking (seen 2026-11) and
the texts of its 400 answers: "roles must alternate", "first message must use the user role", "`tool_use` ids
were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found in `tool_result`
blocks", "each tool_use must have a single result", "`tool_use` ids must be unique", "text content blocks must
be non-empty", "text content blocks must contain non-whitespace text", "final assistant content cannot end
with trailing whitespace", "The final block in an assistant message cannot be `thinking`", "If an assistant
message contains any thinking blocks, the first block must be `thinking` or `redacted_thinking`", "content
cannot be empty if `is_error` is true", "all content must be type `text` if `is_error` is true", "`web_search`
tool use with id … was found without a corresponding `web_search_tool_result` block", "This model does not
support assistant message prefill. The conversation must end with a user message" (Claude 4.6 on), "String
should match pattern '^[a-zA-Z0-9_-]+$'".
"""

from __future__ import annotations

import re

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
USER = ("text", "image", "document", "tool_result", "search_result", "container_upload")
ASSISTANT = (
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
)
OWN_CALLS = ("server_tool_use", "mcp_tool_use")
IN_RESULT = ("text", "image", "document", "search_result", "tool_reference")
THINKING = ("thinking", "redacted_thinking")


def problems(
    messages: list[dict],
    system: str | None = None,
    tools: list[dict] | None = None,
    takes_prefill: bool = True,
) -> list[str]:
    """Return what the API would refuse; empty for a valid request."""
    found: list[str] = []
    if system is not None and not system.strip():
        found.append("system is empty")
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role, content = message.get("role"), message.get("content")
        if role != ("user", "assistant")[index % 2]:
            found.append(f"{where}: role {role!r}")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list) or not content:
            found.append(f"{where}: content is {content!r}")
            continue
        if role == "assistant":
            found += _assistant(content, where, seen, is_last=index == len(messages) - 1)
            waiting = [block["id"] for block in content if block.get("type") == "tool_use"]
        else:
            found += _user(content, where, waiting)
            waiting = []
    if waiting:
        found.append(f"at the end: tool_use {waiting} without tool_result")
    ends = messages[-1] if messages else {}
    is_prefill = ends.get("role") == "assistant" and ends["content"][-1].get("type") not in OWN_CALLS
    if is_prefill and not takes_prefill:
        found.append("at the end: an assistant message")
    return found + _tools(tools)


def _user(content: list[dict], where: str, waiting: list[str]) -> list[str]:
    found = []
    waiting = list(waiting)
    others = False
    for at, block in enumerate(content):
        place = f"{where}.content[{at}]"
        if block.get("type") not in USER:
            found.append(f"{place}: type {block.get('type')!r}")
        if block.get("type") != "tool_result":
            others = True
            found += _block(block, place)
            continue
        if others:
            found.append(f"{place}: a tool_result after other content")
        if block.get("tool_use_id") in waiting:
            waiting.remove(block["tool_use_id"])
        else:
            found.append(f"{place}: no tool_use {block.get('tool_use_id')!r} before it")
        found += _result(block, place)
    if waiting:
        found.append(f"{where}: tool_use {waiting} without tool_result")
    return found


def _result(block: dict, where: str) -> list[str]:
    content = block.get("content", "")
    if block.get("is_error") and not content:
        return [f"{where}: an error result without content"]
    if isinstance(content, str):
        return []
    found = []
    for inner in content:
        if block.get("is_error") and inner.get("type") != "text":
            found.append(f"{where}: {inner.get('type')!r} in an error result")
        if inner.get("type") not in IN_RESULT:
            found.append(f"{where}: {inner.get('type')!r} in a tool_result")
        found += _block(inner, where)
    return found


def _assistant(content: list[dict], where: str, seen: set[str], is_last: bool) -> list[str]:
    found = []
    thinks = [block.get("type") in THINKING for block in content]
    if any(thinks) and not thinks[0]:
        found.append(f"{where}: thinking is not first")
    if thinks[-1]:
        found.append(f"{where}: thinking is last")
    for at, block in enumerate(content):
        place = f"{where}.content[{at}]"
        match block.get("type"):
            case "tool_use":
                if not ID.fullmatch(block["id"]) or block["id"] in seen:
                    found.append(f"{place}: id {block['id']!r}")
                seen.add(block["id"])
                if not NAME.fullmatch(block["name"]):
                    found.append(f"{place}: name {block['name']!r}")
                if not isinstance(block["input"], dict):
                    found.append(f"{place}: input is no object")
            case "thinking":
                if not block.get("signature") or not isinstance(block.get("thinking"), str):
                    found.append(f"{place}: thinking without signature")
            case "redacted_thinking":
                if not block.get("data"):
                    found.append(f"{place}: redacted thinking without data")
            case kind if kind not in ASSISTANT:
                found.append(f"{place}: type {kind!r}")
            case _:
                found += _block(block, place)
    last = content[-1]
    is_paused = is_last and last.get("type") in OWN_CALLS
    whole = content[:-1] if is_paused else content
    called = {block["id"] for block in whole if block.get("type") in OWN_CALLS}
    answered = {block["tool_use_id"] for block in whole if "tool_use_id" in block}
    if called != answered:
        found.append(f"{where}: calls of own tools {called ^ answered} in halves")
    if is_last and last.get("type") == "text" and last["text"] != last["text"].rstrip():
        found.append(f"{where}: ends with white space")
    return found


def _block(block: dict, where: str) -> list[str]:
    match block.get("type"):
        case "text":
            if not isinstance(block.get("text"), str) or not block["text"].strip():
                return [f"{where}: empty text"]
        case "image" | "document":
            source = block["source"]
            if source["type"] not in ("base64", "url", "text", "file", "content"):
                return [f"{where}: source {source['type']!r}"]
            if source["type"] == "url" and not source["url"].startswith("http"):
                return [f"{where}: url {source['url']!r}"]
            kinds = (
                ("application/pdf",)
                if block["type"] == "document"
                else ("image/jpeg", "image/png", "image/gif", "image/webp")
            )
            if source["type"] == "base64" and source["media_type"] not in kinds:
                return [f"{where}: media type {source['media_type']!r}"]
            if source["type"] == "text" and not source["data"].strip():
                return [f"{where}: empty document"]
        case _:
            pass
    return []


def _tools(tools: list[dict] | None) -> list[str]:
    if tools is None:
        return []
    names = [tool["name"] for tool in tools]
    found = [] if len(set(names)) == len(names) else [f"tool names {names} are not unique"]
    for tool in tools:
        if not NAME.fullmatch(tool["name"]) or tool["input_schema"].get("type") != "object":
            found.append(f"tool {tool!r}")
        if "description" in tool and not isinstance(tool["description"], str):
            found.append(f"tool {tool['name']!r}: description")
    return found
