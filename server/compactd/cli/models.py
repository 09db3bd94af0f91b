"""`compactd models NAME`: a model's window and limits, and where the numbers come from."""

from __future__ import annotations

import argparse

import msgspec

from compactd.cli.ending import DONE
from compactd.cli.known import named
from compactd.cli.page import Page
from compactd.client import Client
from compactd.core.registry import Pricing
from compactd.rpc.wire import LookupResult

ABOUT = """\
What is known of a model, by whatever name: claude-opus-4-5, openai/gpt-5,
qwen2.5-coder:7b. A number that nobody recorded is called a guess.
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The name, and where the model is served."""
    parser.description = ABOUT
    parser.add_argument("name", metavar="NAME", help="the model, also as provider/name")
    parser.add_argument("--provider", help="who serves it")
    parser.add_argument("--base-url", metavar="URL", help="the endpoint it is served from")


def run(options: argparse.Namespace, page: Page) -> int:
    """Asks the daemon."""
    params = {"model": options.name, "provider": options.provider, "base_url": options.base_url}
    with Client() as client:
        found = client.ask("models/lookup", params, LookupResult)
    if page.is_json:
        page.json(found)
    else:
        show(page, found)
    return DONE


def show(page: Page, found: LookupResult) -> None:
    """One fact a line."""
    is_guess = found.confidence == "guess"
    most = ", at most: a local server may load less" if found.upper_bound else ""
    page.row("model", named(found) + (", retired" if found.retired else ""))
    page.figure(
        "window",
        f"{found.context_window:,}{'?' if is_guess else ''}",
        origin_of(found) + most,
        "due" if is_guess else "",
    )
    if found.input_limit is not None:
        page.figure("input", f"{found.input_limit:,}", "at most")
    if found.output_limit is not None:
        page.figure("output", f"{found.output_limit:,}", "at most")
    pricing = pricing_of(found)
    if pricing is not None:
        page.row("price", price_text(pricing))
    page.row("tokenizer", found.tokenizer or "not known: tokens are estimated")


def origin_of(found: LookupResult) -> str:
    """Where the window comes from, in a few words."""
    if found.confidence == "guess" and found.source == "default":
        return "a guess: no source knows this model"
    return f"{'a guess' if found.confidence == 'guess' else found.confidence} ({found.source}; {found.how})"


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
