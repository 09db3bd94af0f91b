"""Reads requests of four wire formats into one form, and counts their tokens. It shares no code with
compactd, except the token table of o200k_base, which nobody can fetch without a network.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import tiktoken

from tests.support.loopback.writing import Json

TABLE = Path(__file__).parents[3] / "server/compactd/models/data/encodings/o200k_base.z"
PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""As in tiktoken_ext.openai_public of tiktoken 0.14.0."""
PER_MESSAGE = 4
"""Tokens of a message besides its texts: role and separators, as OpenAI's cookbook states it ("How to count
tokens with tiktoken", seen 2026-11: 3, and 1 for a name)."""
SEALED = "gAAAA"
"""How the encrypted content of a compaction item begins."""


@dataclass(frozen=True)
class Item:
    """A message, or an item of a Responses request, in the form that all wire formats share."""

    role: str
    """`user`, `assistant`, `tool`, or `system` (also for `developer`)."""
    texts: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    """(id, name) of each call."""
    results: tuple[tuple[str, str], ...] = ()
    """(id of the call, output) of each result."""
    id: str = ""
    """The item's own id, if it has one."""


@cache
def encoding() -> tiktoken.Encoding:
    """Return o200k_base."""
    data = zlib.decompress(TABLE.read_bytes())
    count = int.from_bytes(data[:4], "big")
    ranks, at = {}, 4 + count
    for rank, length in enumerate(data[4 : 4 + count]):
        ranks[data[at : at + length]] = rank
        at += length
    return tiktoken.Encoding("o200k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


@lru_cache(maxsize=50_000)
def tokens_of(text: str) -> int:
    """Return the tokens of a text in o200k_base."""
    return len(encoding().encode_ordinary(text))


def tokens_in(body: Json) -> int:
    """Return the size of a request, as this provider counts: the tokens of every text that a model reads
    (system prompt, messages, names and arguments of calls, results), 4 for each message or item, and the
    tools as compact JSON. Base64 of an image counts as its text does."""
    size = sum(PER_MESSAGE + sum(map(tokens_of, strings(raw))) for raw in raw_items(body))
    size += sum(map(tokens_of, strings(own_system(body))))
    tools = body.get("tools")
    return size + (tokens_of(json.dumps(tools, ensure_ascii=False, separators=(",", ":"))) if tools else 0)


def own_system(body: Json) -> Any:
    """Return the system prompt of a request that has a field for it; otherwise an empty text."""
    return body.get("system") or body.get("instructions") or body.get("systemInstruction") or ""


def raw_items(body: Json) -> list[Any]:
    """Return the messages or items of a request, as they are."""
    given = body.get("messages", body.get("input", body.get("contents", [])))
    return [given] if isinstance(given, str) else list(given or [])


def strings(value: Any) -> Iterator[str]:
    """Yield the texts in a part of a request that a model reads. Ids, roles and types are the wire's."""
    match value:
        case str():
            yield value
        case list():
            for inner in value:
                yield from strings(inner)
        case {"type": "compaction", "encrypted_content": str(sealed)}:
            yield unsealed(sealed)
        case {"type": "reasoning"}:
            yield from strings(value.get("summary"))
        case {"functionCall": {"name": name, **rest}}:
            yield from (name, json.dumps(rest.get("args", {}), ensure_ascii=False))
        case dict():
            for name, inner in value.items():
                if name == "input" and value.get("type") == "tool_use":
                    yield json.dumps(inner, ensure_ascii=False)
                elif name not in (
                    "role",
                    "type",
                    "id",
                    "status",
                    "cache_control",
                    "signature",
                    "thoughtSignature",
                ) and (not name.endswith("_id")):
                    yield from strings(inner)


def visible(body: Json) -> str:
    """Return all that a model reads in a request, except the tools."""
    parts = [own_system(body), *raw_items(body)]
    return "\n".join(text for part in parts for text in strings(part))


def system_of(body: Json) -> str:
    """Return the system prompt, in whatever field or messages it is."""
    own = list(strings(own_system(body)))
    return "\n".join(
        [*own, *(text for item in items_of(body) if item.role == "system" for text in item.texts)]
    )


def tools_of(body: Json) -> set[str]:
    """Return the names of the tools in a request."""
    tools = [each for tool in body.get("tools") or [] for each in tool.get("functionDeclarations", [tool])]
    return {tool.get("name") or tool.get("function", {}).get("name", "") for tool in tools}


def items_of(body: Json) -> list[Item]:
    """Return the messages or items of a request in the form that all formats share."""
    if "contents" in body:
        return list(_gemini_items(body["contents"]))
    return [item for raw in raw_items(body) for item in _items(raw)]


def _items(raw: Any) -> Iterator[Item]:
    match raw:
        case str():
            yield Item("user", (raw,))
        case {"type": "function_call", "call_id": call, "name": name, **rest}:
            yield Item("assistant", calls=((call, name),), id=rest.get("id") or "")
        case {"type": "function_call_output", "call_id": call, **rest}:
            yield Item(
                "tool", results=((call, "\n".join(strings(rest.get("output")))),), id=rest.get("id") or ""
            )
        case {"type": ("reasoning" | "compaction"), **rest}:
            yield Item("assistant", id=rest.get("id") or "")
        case {"role": "tool", "tool_call_id": call, **rest}:
            yield Item("tool", results=((call, "\n".join(strings(rest.get("content")))),))
        case {"role": role, **rest}:
            yield from _message("system" if role == "developer" else role, rest)
        case _:
            yield Item("unknown", tuple(strings(raw)))


def _message(role: str, rest: Json) -> Iterator[Item]:
    """Yield a message. A user message of Anthropic's with results and texts is two items."""
    texts: list[str] = []
    calls = [(call["id"], call["function"]["name"]) for call in rest.get("tool_calls") or ()]
    results: list[tuple[str, str]] = []
    content = rest.get("content")
    for block in [content] if isinstance(content, str) else content or ():
        match block:
            case {"type": "tool_use", "id": call, "name": name}:
                calls.append((call, name))
            case {"type": "tool_result", "tool_use_id": call, **inner}:
                results.append((call, "\n".join(strings(inner.get("content")))))
            case _:
                texts.extend(strings(block))
    if results:
        yield Item("tool", results=tuple(results))
    if texts or calls or not results:
        yield Item(role, tuple(texts), tuple(calls), id=rest.get("id") or "")


def call_name(name: str, arguments: Json) -> str:
    """Return the id that this provider gives a call in Gemini's format, which has none."""
    return f"{name} {json.dumps(arguments, ensure_ascii=False, sort_keys=True)}"


def _gemini_items(contents: list[Json]) -> Iterator[Item]:
    """Yield Gemini's contents. A response belongs to the first call of its name that has none yet."""
    waiting: list[tuple[str, str]] = []
    for content in contents:
        texts: list[str] = []
        calls: list[tuple[str, str]] = []
        results: list[tuple[str, str]] = []
        for part in content.get("parts", []):
            match part:
                case {"functionCall": {"name": name, **rest}}:
                    calls.append((rest.get("id") or call_name(name, rest.get("args", {})), name))
                case {"functionResponse": {"name": name, **rest}}:
                    same = (each for each, of in waiting if of == name and rest.get("id") in (None, each))
                    call = next(same, rest.get("id") or f"no call of {name}")
                    waiting = [each for each in waiting if each[0] != call]
                    results.append((call, "\n".join(strings(rest.get("response")))))
                case _:
                    texts.extend(strings(part))
        waiting = calls or waiting
        if results:
            yield Item("tool", results=tuple(results))
        if texts or calls or not results:
            role = "assistant" if content.get("role") == "model" else str(content.get("role", "user"))
            yield Item(role, tuple(texts), tuple(calls))


def sealed(text: str) -> str:
    """Return a text as the encrypted content of a compaction item. Nobody but this provider reads it."""
    return SEALED + base64.b64encode(text.encode()).decode()


def unsealed(content: str) -> str:
    """Return the text of `sealed`. What another provider sealed is returned as it is."""
    try:
        return base64.b64decode(content.removeprefix(SEALED), validate=True).decode()
    except ValueError:
        return content
