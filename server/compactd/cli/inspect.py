"""`compactd inspect FILE`: where a session's tokens are, and when a compaction comes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from compactd.cli import sizes
from compactd.cli.anatomy import Anatomy, Place, dissect, places_of
from compactd.cli.cost import cost_of
from compactd.cli.ending import DONE
from compactd.cli.gauge import Gauge
from compactd.cli.growth import forecast, growth_of
from compactd.cli.inspected import Inspected, facts_of, show
from compactd.cli.known import Known, beside_messages, known
from compactd.cli.loading import KNOWN, TIMEOUT_S, Conversation, checked, feed, load
from compactd.cli.models import pricing_of
from compactd.cli.page import Page, note, one_line, plural
from compactd.cli.waiting import Waiting
from compactd.client import Client
from compactd.core.usage import context_size, normalise
from compactd.messages import CompactionResult, Message

ABOUT = f"""\
Shows where the tokens of a session file are: what fills the window, the largest
entries, how it grew, when a compaction comes and what one would free now. Changes
nothing, sends nothing anywhere.

{KNOWN}
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The file, its model, and how much to tell."""
    parser.description = ABOUT
    parser.add_argument("file", metavar="FILE", help="the session file")
    parser.add_argument(
        "--model", metavar="ID", help="the conversation's model, if the file does not name it"
    )
    parser.add_argument("--window", type=sizes.tokens, metavar="N", help="the model's window in tokens")
    parser.add_argument("--what", action="store_true", help="what a compaction now would summarise and keep")


def run(options: argparse.Namespace, page: Page) -> int:
    """Reads, asks the daemon, shows."""
    source = checked(options.file)
    with Waiting(f"reading {one_line(source.name)}") as waiting, Client() as client:
        conversation = load(source)
        waiting.say(f"counting {plural(len(conversation.messages), 'message')}")
        fed = feed(client, conversation, model=options.model, window=options.window, live_only=True)
        facts = known(client, fed.session_id, conversation)
        params = {"session_id": fed.session_id, "dry_run": True}
        preview = client.ask("session/compact", params, CompactionResult, timeout_s=TIMEOUT_S)
        warnings = (*conversation.warnings, *fed.started.warnings)
        inspected = examine(conversation, facts, preview, fed.entry_ids, warnings)
    if page.is_json:
        page.json(facts_of(inspected))
    else:
        show(page, inspected, what=options.what)
        note(warnings)
    return DONE


def examine(
    conversation: Conversation,
    known: Known,
    preview: CompactionResult,
    entry_ids: Sequence[str],
    warnings: Sequence[str],
) -> Inspected:
    """All there is to tell. `preview`: what a compaction now would do; `entry_ids`: of the live messages.

    O(messages).
    """
    messages = [message for message, _ in conversation.messages]
    live = [message for message, _ in conversation.live]
    places = places_of(messages)
    live_places = [places[number - 1] if number else Place(0, 0) for number in conversation.live_numbers]
    anatomy = dissect(
        live,
        live_places,
        known.counter,
        system_tokens=known.system_tokens,
        tools_tokens=known.tools_tokens,
        working_dir=conversation.working_dir,
    )
    growth = growth_of(
        messages, places, known.counter, known.fixed_tokens, compacted_after=conversation.compacted_after
    )
    usage = known.state.token_usage
    used = usage.current_context_tokens or 0
    besides = 0
    if usage.last_prompt_tokens:
        besides = max(0, (beside_messages(conversation, known.counter) or 0) - known.fixed_tokens)
    pricing = pricing_of(known.lookup) if known.lookup else None
    return Inspected(
        conversation=conversation,
        known=known,
        anatomy=anatomy,
        gauge=Gauge(
            parts=_parts(anatomy, used, besides),
            used=used,
            window=known.window,
            threshold=usage.threshold_tokens if known.state.compaction.enabled else None,
            is_guess=known.is_guess,
        ),
        report_message=_reported(live, live_places, usage.last_prompt_tokens),
        growth=growth,
        forecast=forecast(growth, used, usage.threshold_tokens),
        cost=cost_of(messages, pricing) if pricing else None,
        preview=preview,
        places=dict(zip(entry_ids, live_places, strict=True)),
        warnings=tuple(warnings),
    )


def _parts(anatomy: Anatomy, used: int, besides: int) -> dict[str, int]:
    """The parts as shares of what is really used: our estimates, stretched or shrunk to what was reported."""
    besides = min(besides, used)
    factor = (used - besides) / anatomy.tokens if anatomy.tokens else 0.0
    return {
        **{name: round(tokens * factor) for name, tokens in anatomy.parts.items()},
        "not_in_file": besides,
    }


def _reported(live: Sequence[Message], places: Sequence[Place], base: int) -> int | None:
    """The number of the message whose report the current size starts from."""
    if not base:
        return None
    for message, place in zip(reversed(live), reversed(places), strict=True):
        if message.usage is not None and context_size(normalise(message.usage)[0]) == base:
            return place.number
    return None
