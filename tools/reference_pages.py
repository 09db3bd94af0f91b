"""What the site says of profiles and providers, out of the tables that the daemon itself acts by.

A page holds `<!-- profile: opal -->`, `<!-- provider: openai -->` or `<!-- request: anthropic -->`; the
site's build puts the table there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
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
from compactd.models.providers.factory import KNOWN, WireName
from compactd.models.providers.protocol import ModelRequest
from compactd.models.providers.response import Wire

MARK = re.compile(r"<!-- (profile|provider|request): ([a-z_-]+) -->")

SIZES: Mapping[SizeRule, str] = {
    "prompt": "input and cache of the last report, and an estimate of what came after it",
    "total": "input, cache and output of the last report, and an estimate of what came after it",
    "context_size": "input, cache and output of the last report; what came after it does not count",
    "finished": "input, cache read and output of the last finished answer's report",
    "estimate": "our estimate of everything",
}


def filled(markdown: str) -> str:
    """`markdown` with its tables. Raises `KeyError` for one that there is not."""
    return MARK.sub(lambda found: TABLES[found[1]](found[2]), markdown)


def profile(name: str) -> str:
    """A profile's behaviour, and the settings that are its own."""
    settings = PROFILES[name]
    rules = settings.rules
    rows = [
        ("due where the size is", _due(rules)),
        ("the size is", SIZES[rules.size]),
        ("stays word for word", _kept(rules.keep)),
        ("after a rejection stays", _kept(rules.overflow_keep)),
        ("the walk back stops where the total is", "≥ that" if rules.stop_inclusive else "> that"),
        ("a turn that is cut", _split(settings)),
        ("window unknown", _unknown(rules.unknown)),
        ("without a model", f"`{rules.without_model}`"),
        ("summary prompt", f"`{rules.prompt}`"),
        ("first line of a summary", f"`{rules.lead}`"),
    ]
    if rules.end:
        rows.append(("its last line", f"`{rules.end}`"))
    if rules.too_short:
        rows.append(("too short", "a conversation of at most `keep_messages` + 1 messages is left alone"))
    if settings.prune:
        rows.append(("prune", _pruned(settings)))
    if settings.auto_continue:
        rows.append(("after an automatic compaction", "a user's message says to continue (`auto_continue`)"))
    if rules.bodiless_is_overflow:
        rows.append(("a 400 or 413 without a body", "is an overflow"))
    if not rules.sub_agents_compact:
        rows.append(("sub-agents", "skip the check of the threshold"))
    rows.append(("counted by", f"`{settings.estimator}`"))
    switches = (*rules.auto_off, *rules.prune_off)
    rows.append(("switched off by", ", ".join(f"`{switch}`" for switch in switches)))
    return table(("", ""), rows)


def provider(name: str) -> str:
    """A provider's address, keys and wire."""
    known = KNOWN[name]
    rows = [
        ("address", f"`{known.base_url}`" if known.base_url else "your own: there is no other"),
        ("another one", _names((*known.urls, "`base_url` in keys.toml", "`base_url` of the request"))),
        ("key", _names(known.keys) + ("" if known.needs_key else ", if it wants one")),
        ("sent as", f"`{known.header}`"),
        ("wire", f"`{known.wire}`"),
    ]
    return table(("", ""), rows)


def request(wire: str) -> str:
    """What is posted, as the wire makes it of two messages."""
    made, shown = _WIRES[wire]()
    body = json.dumps(json.loads(made.body(shown)), indent=2, ensure_ascii=False)
    return f"```text\nPOST {made.path(shown)}\n\n{body}\n```"


TABLES = {"profile": profile, "provider": provider, "request": request}


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
                "the cap, the smallest of window, input limit and observed"
                if trigger.of == "cap"
                else "the window"
            )
            text = f"{sign} {trigger.ratio:.0%} of {of}"
            if trigger.guess_ratio is not None:
                text += f"; {trigger.guess_ratio:.0%} where the window is a guess"
            if trigger.unknown is not None:
                text += f"; {sign} {trigger.unknown:,} tokens where no window is known"
            return text
        case Reserve():
            reserve = f"{trigger.tokens:,}"
            if trigger.divisor is not None:
                reserve = f"the smaller of {reserve} and a {_part(trigger.divisor)} of it"
            return f"{sign} the window less {reserve}"
        case Usable():
            most = f"{trigger.output_tokens:,}"
            return (
                f"{sign} the input limit; where there is none, {sign} the window less the output limit,"
                f" of which at most {most} count, and {most} where it is unknown"
            )
        case _:
            assert_never(trigger)


def _kept(rule: KeepRule) -> str:
    match rule:
        case KeepShare():
            text = f"a {_part(rule.divisor)} of the window"
            return text + (f"; {rule.manual_tokens:,} tokens by hand" if rule.manual_tokens else "")
        case KeepTokens():
            least = f", at most {rule.ratio:.0%} of the window" if rule.ratio else ""
            return f"{rule.tokens:,} tokens{least}"
        case KeepMessages():
            return f"the last {rule.messages} messages"
        case KeepRequest():
            return "the newest request alone"
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
    text = "the one that the last usage report names, else " if unknown.from_report else ""
    text += "nothing is due" if unknown.window is None else f"{unknown.window:,}, which is called a guess"
    if unknown.after_rejection:
        text += f"; after a rejection that names none: {unknown.after_rejection:,}"
    return text


def _pruned(settings: Settings) -> str:
    return (
        f"old tool output becomes a stub where that saves more than {settings.prune_minimum:,} tokens; the"
        f" newest {settings.prune_protect:,} stay, and that of {_names(settings.protected_tools)}"
    )


def _openai() -> tuple[Wire, ModelRequest]:
    from compactd.models.providers.openai import ChatWire

    return ChatWire("max_completion_tokens"), _sample("gpt-4o", _chat("user", "Hi."), system="Be brief.")


def _responses() -> tuple[Wire, ModelRequest]:
    from compactd.models.providers.openai_responses import ResponsesWire

    message = {"role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
    return ResponsesWire(), _sample("gpt-5", message, system="Be brief.")


def _anthropic() -> tuple[Wire, ModelRequest]:
    from compactd.models.providers.anthropic import MessagesWire

    return MessagesWire(), _sample("claude-sonnet-4-5", _chat("user", "Hi."), system="Be brief.")


def _gemini() -> tuple[Wire, ModelRequest]:
    from compactd.models.providers.gemini import GenerateWire

    message = {"role": "user", "parts": [{"text": "Hi."}]}
    return GenerateWire(), _sample("gemini-2.5-pro", message, system="Be brief.")


def _ollama() -> tuple[Wire, ModelRequest]:
    from compactd.models.providers.ollama import OllamaWire

    return OllamaWire(), _sample("qwen3:8b", _chat("user", "Hi."), system="Be brief.", window=8_192)


def _chat(role: str, text: str) -> dict[str, object]:
    return {"role": role, "content": text}


def _sample(
    model: str, message: Mapping[str, object], *, system: str, window: int | None = None
) -> ModelRequest:
    said = Raw(json.dumps(message).encode())
    return ModelRequest(
        model=model, messages=(said,), system=system, max_output_tokens=4_096, context_window=window
    )


_WIRES: Mapping[WireName, Callable[[], tuple[Wire, ModelRequest]]] = {
    "openai": _openai,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
