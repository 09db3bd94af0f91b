"""`compactd models [NAME]`: shows a model's window and limits and their source, or lists the known models."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Struct

from compactd.cli.commands import model_list
from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.complete import models, providers
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.model_facts import full_model_name
from compactd.cli.framework.page import LABEL, Look, Page, one_line, plural
from compactd.client import Client
from compactd.core.models.registry import Pricing
from compactd.protocol.wire import LadderStep, LookupResult, ModelInfo

ABOUT = """\
Shows what compactd knows about a model: claude-opus-4-5, openai/gpt-5,
qwen2.5-coder:7b, or the short names that agents accept, such as opus or flash. A number
without a source is marked as a guess. Without NAME, it lists current models of large
providers, all providers (--all), or a provider's models, and the windows that were
learned on this machine, from a server's answer or from its rejection of a request.
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    name: str | None
    provider: str | None
    base_url: str | None
    all: bool
    explain: bool
    forget: bool


def run(options: Options, page: Page) -> int:
    """Ask the daemon and print the answer."""
    wrong = _wrong(options)
    if wrong:
        raise CommandError(wrong, hint="See `compactd models --help`.", exit_code=USAGE)
    with Client() as client:
        if options.forget:
            return _forget(client, options, page)
        if options.name is None:
            found = client.models_list(provider=options.provider)
            if options.provider is None and not options.all:
                model_list.show_current(page, found)
            else:
                model_list.show(page, found, options.provider)
            return DONE
        answer = client.models_lookup(
            model=options.name,
            provider=options.provider,
            base_url=options.base_url,
            explain=options.explain,
        )
    if page.is_json:
        page.json(answer)
    else:
        show(page, answer)
    return NOTHING_TO_DO if answer.source == "default" else DONE


def _wrong(options: Options) -> str:
    """Return what is wrong with the combination of options; empty if nothing is."""
    if options.name == "":
        return "NAME is empty."
    if options.all and (options.name is not None or options.forget):
        return "--all lists all providers. It cannot be combined with NAME or --forget."
    if options.explain and options.forget:
        return "--explain and --forget cannot be combined."
    if options.explain and options.name is None:
        return "--explain needs a NAME: it shows how one model was found."
    if options.base_url is not None and options.name is None and not options.forget:
        return "--base-url needs a NAME or --forget."
    return ""


def _forget(client: Client, options: Options, page: Page) -> int:
    name, provider, base_url = options.name, options.provider, options.base_url
    is_all = name is None and provider is None and base_url is None
    forgotten = client.models_forget(model=name, provider=provider, base_url=base_url, all=is_all).forgotten
    what = [
        name or "",
        f"of {provider}" if provider else "",
        f"at {base_url}" if base_url else "",
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
    """Print one fact about the model per line."""
    is_guess = found.confidence == "guess"
    look: Look = "due" if is_guess else ""
    doubt, bound = ("?", "at most, a guess") if is_guess else ("", "at most")
    most = ", at most: a local server may use less" if found.upper_bound else ""
    page.row("model", full_model_name(found) + (", retired" if found.retired else ""))
    page.figure("window", f"{found.context_window:,}{doubt}", origin_of(found) + most, look)
    for label, limit in (("input", found.input_limit), ("output", found.output_limit)):
        if limit is not None:
            page.figure(label, f"{limit:,}{doubt}", bound, look)
    pricing = pricing_of(found)
    if pricing is not None:
        page.row("price", price_text(pricing))
        if found.pricing_source is not UNSET:
            page.row("", f"({found.pricing_source})")
    page.row("tokenizer", found.tokenizer or "unknown: tokens are estimated")
    if is_guess and found.source == "default":
        from compactd.cli.framework.unknown_model import suggestion

        if question := suggestion(found.model):
            page.line(question)
    if found.steps is not UNSET:
        page.line()
        _show_steps(page, found.steps)


def _show_steps(page: Page, steps: Sequence[LadderStep]) -> None:
    """Print each step of the lookup and what it found. The last step decides."""
    columns = max((len(step.step) + 2 for step in steps), default=LABEL)
    for step in steps:
        looked_for = f"{one_line(step.key)}: " if step.key else ""
        page.row(one_line(step.step), f"{looked_for}{one_line(step.found) or 'nothing'}", columns=columns)


def origin_of(found: LookupResult) -> str:
    """Return where the window comes from, in a few words."""
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


def pricing_of(found: LookupResult | ModelInfo) -> Pricing | None:
    """Return the model's prices; None if they are unknown."""
    return msgspec.json.decode(found.pricing, type=Pricing | None)


def price_text(pricing: Pricing) -> str:
    """Return the prices as text, in US dollars per million tokens."""
    parts = [f"${pricing.input:g} in", f"${pricing.output:g} out"]
    if pricing.cache_read is not None:
        parts.append(f"${pricing.cache_read:g} cache read")
    if pricing.cache_write is not None:
        parts.append(f"${pricing.cache_write:g} cache write")
    if pricing.cache_write_1h is not None:
        parts.append(f"${pricing.cache_write_1h:g} cache write for an hour")
    text = f"{', '.join(parts)} per million tokens"
    steps = [f"above {step.above:,}: ${step.input:g} in, ${step.output:g} out" for step in pricing.steps]
    return "; ".join((text, *steps))


COMMAND = Command(
    "models",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("name", "the model's name, or provider/name", required=False, completed=models),
        Option("--provider", "the provider; without NAME, list its models", completed=providers),
        Option("--base-url", "the address that serves the model", metavar="URL"),
        Flag("--all", "list all providers"),
        Flag("--explain", "show every step of the lookup and what it found"),
        Flag(
            "--forget",
            "remove learned windows: of NAME, --provider, --base-url, or all",
        ),
    ),
    examples=(
        ("compactd models claude-opus-4-5", "show its window, limits and prices, and their source"),
        ("compactd models qwen2.5-coder:7b --explain", "show how the name was understood"),
        ("compactd models --provider anthropic", "list a provider's models"),
    ),
    is_paged=True,
)
