"""Tables and examples in docs/profiles, docs/providers and docs/formats.md, generated from the tables that
the daemon uses.

A page marks the place with `<!-- profile: opal -->`, `<!-- provider: openai -->`,
`<!-- request: anthropic -->` or `<!-- formats: session -->`, and `<!-- end -->` after it.
`python tools/reference_pages.py --write` updates the text in between; `--check` lists stale pages, and a
test fails if there are any.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from msgspec import Raw

from compactd.core.budget.profiles import PROFILES
from compactd.core.budget.rules import (
    KeepMessages,
    KeepRequest,
    KeepRule,
    KeepShare,
    KeepTokens,
    Ratio,
    Reserve,
    Rules,
    Settings,
    SizeRule,
    TriggerRule,
    UnknownWindow,
    Usable,
)
from compactd.formats.files.session_formats import SESSION_FORMATS, SessionFormat
from compactd.models.providers.factory import KEY_HEADERS, KNOWN_PROVIDERS, WireName, url_variables
from compactd.models.providers.provider import ModelRequest
from compactd.models.providers.response import ProviderApi

DOCS = Path(__file__).parents[1] / "docs"
COMMAND = "python tools/reference_pages.py --write"
MARK = re.compile(
    r"(?P<start><!-- (?P<kind>profile|provider|request|formats): (?P<name>[a-z_-]+) -->\n)"
    r"(?:(?!<!-- ).)*(?P<end><!-- end -->)",
    re.DOTALL,
)

Tables = Mapping[str, Callable[[str], str]]
"""By kind of mark: the function that makes the table or example with a name."""

SIZES: Mapping[SizeRule, str] = {
    "prompt": "input and cache tokens of the last usage report, plus an estimate of later messages",
    "total": "input, cache and output tokens of the last usage report, plus an estimate of later messages",
    "context_size": "input, cache and output tokens of the last usage report; later messages do not count",
    "finished": "input, cache read and output tokens of the last finished answer's usage report",
    "estimate": "compactd's estimate of the whole request",
}


def filled(markdown: str, tables: Tables) -> str:
    """Return `markdown` with its tables up to date. Raise `KeyError` for an unknown name."""
    return MARK.sub(
        lambda mark: f"{mark['start']}\n{tables[mark['kind']](mark['name'])}\n\n{mark['end']}", markdown
    )


def stale_pages(changed: Tables | None = None) -> dict[Path, str]:
    """Return the pages that differ from what the tables say, each with its new text. `changed` are tables to
    use instead of those of the same kind in `TABLES`."""
    tables = {**TABLES, **(changed or {})}
    pages = [page for folder in ("profiles", "providers") for page in sorted((DOCS / folder).glob("*.md"))]
    pages.append(DOCS / "formats.md")
    new = {page: filled(page.read_text("utf-8"), tables) for page in pages}
    return {page: text for page, text in new.items() if text != page.read_text("utf-8")}


def profile(name: str) -> str:
    """A profile's behaviour, and the settings in which it differs."""
    settings = PROFILES[name]
    rules = settings.rules
    rows = [
        ("a compaction is due if the size is", _due(rules)),
        ("what counts as the size", SIZES[rules.size]),
        ("what stays word for word", _kept(rules.keep)),
        ("what stays after a rejection", _kept(rules.overflow_keep)),
        (
            "the kept tail ends when its total is",
            "≥ that amount" if rules.stop_inclusive else "> that amount",
        ),
        ("a split turn", _split(settings)),
        ("if the window is unknown", _unknown(rules.unknown)),
        ("summary without a model", f"`{rules.without_model}`"),
        ("summary prompt", f"`{rules.prompt}`"),
        ("first line of a summary", f"`{rules.lead}`"),
    ]
    if rules.end:
        rows.append(("last line of a summary", f"`{rules.end}`"))
    if rules.too_short:
        rows.append(("too short to compact", "a conversation of at most `keep_messages` + 1 messages"))
    if settings.prune:
        rows.append(("pruning", _pruned(settings)))
    if settings.auto_continue:
        rows.append(
            ("after an automatic compaction", "a user message tells the agent to continue (`auto_continue`)")
        )
    if rules.bodiless_is_overflow:
        rows.append(("a 400 or 413 without a body", "counts as an overflow"))
    if not rules.sub_agents_compact:
        rows.append(("sub-agents", "do not check the threshold"))
    rows.append(("token estimator", f"`{settings.estimator}`"))
    switches = (*rules.auto_off, *rules.prune_off)
    rows.append(("environment variables that switch it off", ", ".join(f"`{switch}`" for switch in switches)))
    return table(("rule", f"`{name}`"), rows)


def provider(name: str) -> str:
    """A provider's address, keys and wire format."""
    known = KNOWN_PROVIDERS[name]
    rows = [
        ("address", f"`{known.base_url}`" if known.base_url else "none: you must give one"),
        (
            "where to set another address",
            _names((*url_variables(name, known), "`base_url` in keys.toml", "`base_url` of the request")),
        ),
        ("key", _names(known.keys) + ("" if known.needs_key else " (optional)")),
        ("header of the key", f"`{KEY_HEADERS.get(known.wire, known.header)}`"),
        ("wire", f"`{known.wire}`"),
    ]
    return table(("what", "value"), rows)


def request(wire: str) -> str:
    """The HTTP request for two messages, in this wire format."""
    made, shown = _WIRES[wire]()
    body = json.dumps(json.loads(made.body(shown)), indent=2, ensure_ascii=False)
    return f"```text\nPOST {made.path(shown)}\n\n{body}\n```"


def formats(_: str) -> str:
    """The formats of session files."""
    head = ("format", "what it is", "written", "what a file in this format cannot contain")
    return table(
        head,
        [
            (f"`{row.name}`", row.what, f"yes ({row.written_as})" if row.written_as else _yes(row), row.lost)
            for row in SESSION_FORMATS
        ],
    )


def _yes(row: SessionFormat) -> str:
    return "no" if row.reader.startswith("agents.") and not row.writer else "yes"


TABLES: Tables = {"profile": profile, "provider": provider, "request": request, "formats": formats}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


def _names(names: Sequence[str]) -> str:
    return ", ".join(name if name.startswith("`") else f"`{name}`" for name in names)


def _due(rules: Rules) -> str:
    sign = "≥" if rules.inclusive else ">"
    trigger: TriggerRule = rules.trigger
    match trigger:
        case Ratio():
            of = (
                "the cap (the smallest of window, input limit, observed window)"
                if trigger.of == "cap"
                else "the window"
            )
            text = f"{sign} {trigger.ratio:.0%} of {of}"
            if trigger.guess_ratio is not None:
                text += f"; {trigger.guess_ratio:.0%} if the window is a guess"
            if trigger.unknown is not None:
                text += f"; {sign} {trigger.unknown:,} tokens if the window is unknown"
            return text
        case Reserve():
            reserve = f"{trigger.tokens:,}"
            if trigger.divisor is not None:
                reserve = f"the smaller of {reserve} and a {_part(trigger.divisor)} of the window"
            return f"{sign} the window minus {reserve} tokens"
        case Usable():
            most = f"{trigger.output_tokens:,}"
            return (
                f"{sign} the input limit; without an input limit, {sign} the window minus the output limit"
                f" (at most {most} tokens; {most} if the output limit is unknown)"
            )
        case _:
            assert_never(trigger)


def _kept(rule: KeepRule) -> str:
    match rule:
        case KeepShare():
            text = f"a {_part(rule.divisor)} of the window"
            return text + (
                f"; {rule.manual_tokens:,} tokens if you start the compaction yourself"
                if rule.manual_tokens
                else ""
            )
        case KeepTokens():
            least = f", at most {rule.ratio:.0%} of the window" if rule.ratio else ""
            return f"{rule.tokens:,} tokens{least}"
        case KeepMessages():
            return f"the last {rule.messages} messages"
        case KeepRequest():
            return "only the newest request"
        case _:
            assert_never(rule)


def _part(divisor: int) -> str:
    return {4: "quarter", 5: "fifth"}[divisor]


def _split(settings: Settings) -> str:
    if not settings.rules.splits:
        return "gets no summary of its own"
    least = settings.split_min_messages
    return "gets a summary of its own" + (f" from {least} messages on" if least > 1 else "")


def _unknown(unknown: UnknownWindow) -> str:
    text = "the window that the last usage report names; otherwise " if unknown.from_report else ""
    text += "nothing is due" if unknown.window is None else f"{unknown.window:,}, reported as a guess"
    if unknown.after_rejection:
        text += f"; {unknown.after_rejection:,} after a rejection that names no window"
    return text


def _pruned(settings: Settings) -> str:
    return (
        f"old tool output becomes a stub if that saves more than {settings.prune_minimum:,} tokens; the"
        f" newest {settings.prune_protect:,} tokens of it stay, and so does output of"
        f" {_names(settings.protected_tools)}"
    )


def _openai() -> tuple[ProviderApi, ModelRequest]:
    from compactd.models.providers.openai import ChatApi

    return ChatApi("max_completion_tokens"), _sample("gpt-4o", _chat("user", "Hi."), system="Be brief.")


def _responses() -> tuple[ProviderApi, ModelRequest]:
    from compactd.models.providers.openai_responses import ResponsesApi

    message = {"role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
    return ResponsesApi(), _sample("gpt-5", message, system="Be brief.")


def _anthropic() -> tuple[ProviderApi, ModelRequest]:
    from compactd.models.providers.anthropic import MessagesApi

    return MessagesApi(), _sample("claude-sonnet-4-5", _chat("user", "Hi."), system="Be brief.")


def _gemini() -> tuple[ProviderApi, ModelRequest]:
    from compactd.models.providers.gemini import GenerateApi

    message = {"role": "user", "parts": [{"text": "Hi."}]}
    return GenerateApi(), _sample("gemini-2.5-pro", message, system="Be brief.")


def _ollama() -> tuple[ProviderApi, ModelRequest]:
    from compactd.models.providers.ollama import OllamaApi

    return OllamaApi(), _sample("qwen3:8b", _chat("user", "Hi."), system="Be brief.", window=8_192)


def _chat(role: str, text: str) -> dict[str, object]:
    return {"role": role, "content": text}


def _sample(
    model: str, message: Mapping[str, object], *, system: str, window: int | None = None
) -> ModelRequest:
    said = Raw(json.dumps(message).encode())
    return ModelRequest(
        model=model, messages=(said,), system=system, max_output_tokens=4_096, context_window=window
    )


_WIRES: Mapping[WireName, Callable[[], tuple[ProviderApi, ModelRequest]]] = {
    "openai": _openai,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}

if __name__ == "__main__":
    stale = stale_pages()
    if sys.argv[1:] == ["--write"]:
        for page, text in stale.items():
            page.write_text(text, "utf-8")
    elif stale:
        sys.exit("\n".join((f"stale: run `{COMMAND}`", *(str(page) for page in stale))))
