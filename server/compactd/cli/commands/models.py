"""`compactd models [NAME]`: a model's window and limits, and where they come from; or which are known."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Struct

from compactd.cli.commands import model_list
from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.complete import models, providers
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, Stop
from compactd.cli.framework.model_facts import named
from compactd.cli.framework.page import LABEL, Look, Page, one_line, plural
from compactd.client import Client
from compactd.core.models.registry import Pricing
from compactd.protocol.wire import ForgetResult, LadderStep, ListModelsResult, LookupResult

ABOUT = """\
What is known of a model, by whatever name: claude-opus-4-5, openai/gpt-5,
qwen2.5-coder:7b. A number that nobody recorded is called a guess. Without NAME:
the models of a provider, or the providers; and the windows that servers taught
this machine, in a rejection or when they were asked.
"""


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    name: str | None
    provider: str | None
    base_url: str | None
    explain: bool
    forget: bool


def run(options: Options, page: Page) -> int:
    """Asks the daemon."""
    wrong = _wrong(options)
    if wrong:
        raise Stop(wrong, hint="`compactd models --help` tells more.", exit_code=USAGE)
    with Client() as client:
        if options.forget:
            return _forget(client, options, page)
        if options.name is None:
            found = client.ask("models/list", {"provider": options.provider}, ListModelsResult)
            model_list.show(page, found, options.provider)
            return DONE
        params: dict[str, object] = {
            "model": options.name,
            "provider": options.provider,
            "base_url": options.base_url,
        }
        if options.explain:
            params["explain"] = True
        answer = client.ask("models/lookup", params, LookupResult)
    if page.is_json:
        page.json(answer)
    else:
        show(page, answer)
    return DONE


def _wrong(options: Options) -> str:
    """What is wrong with the options together; empty if nothing is."""
    if options.name == "":
        return "NAME is empty."
    if options.explain and options.forget:
        return "--explain and --forget exclude each other."
    if options.explain and options.name is None:
        return "--explain wants a NAME: it tells how one model was found."
    if options.base_url is not None and options.name is None and not options.forget:
        return "--base-url wants a NAME, or --forget."
    return ""


def _forget(client: Client, options: Options, page: Page) -> int:
    params: dict[str, object] = {
        "model": options.name,
        "provider": options.provider,
        "base_url": options.base_url,
    }
    if all(part is None for part in params.values()):
        params = {"all": True}
    forgotten = client.ask("models/forget", params, ForgetResult).forgotten
    what = [
        options.name or "",
        f"of {options.provider}" if options.provider else "",
        f"at {options.base_url}" if options.base_url else "",
    ]
    of_what = one_line(" ".join(part for part in what if part))
    if page.is_json:
        page.json({"forgotten": forgotten})
    elif forgotten:
        page.line(f"forgot {plural(forgotten, 'learned window')}{f': {of_what}' if of_what else ''}")
    else:
        page.line(f"nothing to forget: no window was learned{f': {of_what}' if of_what else ''}")
    return DONE if forgotten else NOTHING_TO_DO


def show(page: Page, found: LookupResult) -> None:
    """One fact a line."""
    is_guess = found.confidence == "guess"
    look: Look = "due" if is_guess else ""
    doubt, bound = ("?", "at most, a guess") if is_guess else ("", "at most")
    most = ", at most: a local server may load less" if found.upper_bound else ""
    page.row("model", named(found) + (", retired" if found.retired else ""))
    page.figure("window", f"{found.context_window:,}{doubt}", origin_of(found) + most, look)
    for label, limit in (("input", found.input_limit), ("output", found.output_limit)):
        if limit is not None:
            page.figure(label, f"{limit:,}{doubt}", bound, look)
    pricing = pricing_of(found)
    if pricing is not None:
        page.row("price", price_text(pricing))
    page.row("tokenizer", found.tokenizer or "not known: tokens are estimated")
    if found.steps is not UNSET:
        page.line()
        _show_steps(page, found.steps)


def _show_steps(page: Page, steps: Sequence[LadderStep]) -> None:
    """What was looked for, step by step, and what it gave; the last word counts."""
    columns = max((len(step.step) + 2 for step in steps), default=LABEL)
    for step in steps:
        looked_for = f"{one_line(step.key)}: " if step.key else ""
        page.row(one_line(step.step), f"{looked_for}{one_line(step.found) or 'nothing'}", columns=columns)


def origin_of(found: LookupResult) -> str:
    """Where the window comes from, in a few words."""
    source = f"({found.source}; {found.how})"
    match found.confidence:
        case "guess" if found.source == "default":
            return "a guess: no source knows this model"
        case "guess":
            return f"a guess {source}"
        case "disputed":
            return f"disputed, the smallest of several numbers {source}"
        case "observed":
            return f"learned: {found.source} ({found.how.removeprefix('observed; ')})"
        case "override":
            return f"your own setting {source}"
        case _:
            return f"fact {source}"


def pricing_of(found: LookupResult) -> Pricing | None:
    """The model's prices, where they are known."""
    return msgspec.json.decode(found.pricing, type=Pricing | None)


def price_text(pricing: Pricing) -> str:
    """Prices in US dollars for a million tokens."""
    parts = [f"${pricing.input:g} in", f"${pricing.output:g} out"]
    if pricing.cache_read is not None:
        parts.append(f"${pricing.cache_read:g} cache read")
    if pricing.cache_write is not None:
        parts.append(f"${pricing.cache_write:g} cache write")
    text = f"{', '.join(parts)} per million tokens"
    steps = [f"above {step.above:,}: ${step.input:g} in, ${step.output:g} out" for step in pricing.steps]
    return "; ".join((text, *steps))


COMMAND = Command(
    "models",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("name", "the model, also as provider/name", required=False, completed=models),
        Option("--provider", "who serves it; without NAME: lists its models", completed=providers),
        Option("--base-url", "the endpoint it is served from", metavar="URL"),
        Flag("--explain", "every step of the lookup, and what it found"),
        Flag(
            "--forget",
            "forget windows learned from servers: of NAME, --provider, --base-url, or all",
        ),
    ),
    examples=(
        ("compactd models claude-opus-4-5", "its window, limits and price, and where the numbers come from"),
        ("compactd models qwen2.5-coder:7b --explain", "how a name was understood"),
        ("compactd models --provider anthropic", "a provider's models"),
    ),
    is_paged=True,
)
