"""OpenAI's rules for the input of a Responses request.

From the API reference ("Create a model response"), the guides to reasoning, function calling, images and file
inputs (seen 2026-11), the types of OpenAI's own client, and the texts of its 400 answers: "No tool output
found for function call call_…", "No tool call found for function call output with call_id …", "Invalid value:
'input_text'. Supported values are: 'output_text' and 'refusal'", "Invalid 'input[1].call_id': string too
long. Expected a string with maximum length 64", "string does not match pattern. Expected a string that
matches the pattern '^[a-zA-Z0-9_-]+$'", "Item 'rs_…' of type 'reasoning' was provided without its required
following item", "Item 'msg_…' of type 'message' was provided without its required 'reasoning' item", "Item
with id 'rs_…' not found. Items are not persisted when `store` is set to false", "Duplicate item found with
id", "Missing required parameter: 'input[1].summary'", "Invalid 'input[1].content': array too long. Expected
an array with maximum length 0".
"""

from __future__ import annotations

import re

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
IMAGE = re.compile(r"https?://|data:image/(png|jpeg|gif|webp);base64,")
FILE = re.compile(r"data:[a-z]+/[a-z0-9.+-]+;base64,")
INPUT = ("input_text", "input_image", "input_file")
PARTS_OF = {
    "system": INPUT,
    "developer": INPUT,
    "user": INPUT,
    "assistant": ("output_text", "refusal"),
}
BY_MODEL = ("function_call", "message")
"""The kinds of items that reasoning may have led to."""


def problems(
    items: list[dict], instructions: str | None = None, tools: list[dict] | None = None
) -> list[str]:
    """Return what the API would refuse; empty for a valid request."""
    found: list[str] = []
    if instructions is not None and not instructions.strip():
        found.append("instructions are empty")
    waiting: dict[str, None] = {}
    called: set[str] = set()
    reasoned: set[str] = set()
    for index, item in enumerate(items):
        where = f"input[{index}]"
        after = items[index + 1] if index + 1 < len(items) else {}
        match item.get("type", "message"):
            case "message":
                # A text of the model may come after its calls, as it may in a response.
                if waiting and item.get("role") != "assistant":
                    found.append(f"{where}: calls {list(waiting)} have no output before it")
                    waiting = {}
                found += _message(item, where)
            case "function_call":
                found += _call(item, where, called)
                called.add(item.get("call_id", ""))
                waiting[item.get("call_id", "")] = None
            case "function_call_output":
                if item.get("call_id") in waiting:
                    del waiting[item["call_id"]]
                else:
                    found.append(f"{where}: no call {item.get('call_id')!r} waits for an output")
                found += _output(item, where)
            case "reasoning":
                found += _reasoning(item, after, where, reasoned)
                reasoned.add(item.get("id", ""))
            case "compaction":
                if not item.get("encrypted_content"):
                    found.append(f"{where}: a compaction without its encrypted content")
            case kind:
                found.append(f"{where}: an item of type {kind!r}")
    if waiting:
        found.append(f"at the end: calls {list(waiting)} have no output")
    return found + _tools(tools)


def _message(item: dict, where: str) -> list[str]:
    role, content = item.get("role"), item.get("content")
    if role not in PARTS_OF:
        return [f"{where}: role {role!r}"]
    found = [f"{where}: an id without its reasoning"] if "id" in item else []
    if isinstance(content, str):
        return found if content else [*found, f"{where}: empty content"]
    if not isinstance(content, list) or not content:
        return [*found, f"{where}: content is {content!r}"]
    return found + _parts(content, PARTS_OF[role], where)


def _parts(parts: list[dict], known: tuple[str, ...], where: str) -> list[str]:
    found = []
    for at, part in enumerate(parts):
        place = f"{where}.content[{at}]"
        kind = part.get("type")
        if kind not in known:
            found.append(f"{place}: a part of type {kind!r}")
        elif kind in ("input_text", "output_text") and not part.get("text"):
            found.append(f"{place}: empty text")
        elif kind == "refusal" and not part.get("refusal"):
            found.append(f"{place}: empty refusal")
        elif kind == "input_image" and not _is_image(part):
            found.append(f"{place}: image {str(part)[:80]}")
        elif kind == "input_file" and not _is_file(part):
            found.append(f"{place}: file {str(part)[:80]}")
    return found


def _is_image(part: dict) -> bool:
    return bool(part.get("file_id")) or IMAGE.match(part.get("image_url") or "") is not None


def _is_file(part: dict) -> bool:
    if "file_data" in part:
        return bool(part.get("filename")) and FILE.match(part["file_data"]) is not None
    return bool(part.get("file_id")) or str(part.get("file_url")).startswith("http")


def _call(item: dict, where: str, called: set[str]) -> list[str]:
    found = []
    if not isinstance(item.get("call_id"), str) or not 0 < len(item["call_id"]) <= 64:
        found.append(f"{where}: call_id {item.get('call_id')!r}")
    elif item["call_id"] in called:
        found.append(f"{where}: call_id {item['call_id']!r} comes twice")
    if "id" in item:
        found.append(f"{where}: an id without its reasoning")
    if not NAME.fullmatch(item.get("name", "")):
        found.append(f"{where}: name {item.get('name')!r}")
    if not isinstance(item.get("arguments"), str):
        found.append(f"{where}: arguments are no string")
    return found


def _output(item: dict, where: str) -> list[str]:
    output = item.get("output")
    if isinstance(output, str):
        return []
    if not isinstance(output, list) or not output:
        return [f"{where}: output is {output!r}"]
    return _parts(output, INPUT, where)


def _reasoning(item: dict, after: dict, where: str, reasoned: set[str]) -> list[str]:
    found = []
    if not item.get("id") or item["id"] in reasoned:
        found.append(f"{where}: id {item.get('id')!r}")
    if not isinstance(item.get("summary"), list):
        found.append(f"{where}: reasoning without summary")
    if not item.get("encrypted_content"):
        found.append(f"{where}: reasoning that is not there without `store`")
    if item.get("content"):
        found.append(f"{where}: reasoning in plain text")
    kind = after.get("type", "message") if after else None
    is_models = kind in (*BY_MODEL, "reasoning") and after.get("role", "assistant") == "assistant"
    if not is_models:
        found.append(f"{where}: reasoning without its required following item")
    return found


def _tools(tools: list[dict] | None) -> list[str]:
    if tools is None:
        return []
    if not tools:
        return ["tools is empty"]
    names = [tool.get("name", "") for tool in tools]
    found = [] if len(set(names)) == len(names) else [f"tool names {names} are not unique"]
    for tool in tools:
        parameters = tool.get("parameters")
        if tool.get("type") != "function" or not NAME.fullmatch(tool.get("name", "")):
            found.append(f"tool {tool!r}")
        elif not isinstance(parameters, dict) or parameters.get("type") != "object":
            found.append(f"tool {tool['name']!r}: parameters {parameters!r}")
        elif "properties" not in parameters:
            found.append(f"tool {tool['name']!r}: object schema missing properties")
        elif tool.get("strict", True):
            found.append(f"tool {tool['name']!r}: strict, by default")
    return found
