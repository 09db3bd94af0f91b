"""Checks of the size of requests, and of what a compaction must save (laws 2 and 8)."""

from __future__ import annotations

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, check, expect
from compactd_conformance.talk import BUDGETS, KEEP, agent_turns, assistant, text, turns, user


@check(
    "the-system-prompt-counts",
    law="Law 2",
    says="Every size is that of the whole request, with system prompt and tools. This holds for "
    "`session/context`, for the size that `decision` compares with the threshold, and for `tokens_before` "
    "and `tokens_after` of a compaction.",
    mend="Count everything that is sent to the model, including system prompt and tool schemas.",
)
def system_prompt_counts(bench: Bench) -> None:
    """Measure a session with and without system prompt and tools. Expect a larger size with them."""
    tool = {"name": "run", "description": text(100), "input_schema": {"type": "object", "properties": {}}}
    bare = bench.talk(*turns(6, 200))
    full = bench.talk(*turns(6, 200), system_prompt=text(500), tools=[tool])

    sizes = [(talk.context().tokens, talk.append(user("?")).decision.used) for talk in (bare, full)]
    grown = [after - before for before, after in zip(*sizes, strict=True)]
    expect(
        min(grown) >= 590,
        "both sizes larger by 500 tokens of system prompt and 100 of a tool",
        f"{grown} more",
    )
    done = [talk.compact_or_fail(keep_recent=KEEP) for talk in (bare, full)]
    more = (done[1].tokens_before - done[0].tokens_before, done[1].tokens_after - done[0].tokens_after)
    expect(min(more) >= 590, "tokens_before and tokens_after larger by the same number", f"{more} more")


@check(
    "smaller-or-not-compacted",
    law="Law 2",
    says="`compacted: true` means that tokens_after is below tokens_before. If a compaction would not make "
    "the context smaller, the answer is `compacted: false` with a reason, and nothing changes.",
    mend="Count the tokens of the compacted request before you use it; keep the old one if the new one is "
    "not smaller.",
)
def smaller(bench: Bench) -> None:
    """Compact two short conversations, which a summary would make longer, and a long one. Expect fewer tokens
    if the result is `compacted: true`, and an unchanged view otherwise."""
    # A summary would be longer than this conversation.
    short = [one for n in range(4) for one in (user(f"{n}?"), assistant("ok"))]
    for messages, params in (
        (short, {"keep_messages": 2}),
        (short[:4], {"keep_messages": 1}),
        (agent_turns(6), {"keep_recent": KEEP}),
    ):
        talk = bench.talk(*messages)
        before = talk.context()
        done = talk.compact(**params)
        after = talk.context()
        if done.compacted:
            expect(done.tokens_after < done.tokens_before, "tokens_after below tokens_before", done)
            expect(
                done.tokens_saved == done.tokens_before - done.tokens_after,
                "tokens_saved = tokens_before - tokens_after",
                done,
            )
        else:
            _require_nothing_done(done)
            expect(after == before, "the view unchanged", f"{before.tokens} → {after.tokens} tokens")


def _require_nothing_done(done: shapes.Compaction) -> None:
    expect(bool(done.reason), "a reason that is a sentence", done)
    expect(done.tokens_after == done.tokens_before, "tokens_after = tokens_before", done)
    expect(done.compaction_id is None, "no compaction_id", done)


@check(
    "the-second-time-nothing",
    law="Law 2",
    says="If a session is compacted twice with the same budget, and no message was appended in between, "
    "the second compaction answers `compacted: false`.",
    mend="Search for a cut point only in the messages that were appended since the last compaction.",
)
def second_time(bench: Bench) -> None:
    """Compact twice with each budget. Expect `compacted: false` the second time."""
    for budget in BUDGETS:
        talk = bench.talk(*agent_turns(6))
        talk.compact_or_fail(**budget)
        before = talk.context()

        again = talk.compact(**budget)
        expect(not again.compacted, f"compacted: false for the second compaction with {budget}", again)
        _require_nothing_done(again)
        expect(talk.context() == before, "the view unchanged", talk.context().tokens)


@check(
    "what-is-said-is-what-is-there",
    law="Law 2",
    says="`tokens_before`, `tokens_after`, the message counts and `first_kept_entry_id` of a compaction "
    "agree with what `session/context` returns before and after it.",
    mend="Count the whole request before and after the compaction, with the same estimator.",
)
def measured(bench: Bench) -> None:
    """Compare the numbers in a compaction's result with the contexts before and after it."""
    talk = bench.talk(*agent_turns(6), system_prompt=text(50))
    before = talk.context()
    done = talk.compact_or_fail(keep_recent=KEEP)
    after = talk.context()

    told = (done.tokens_before, done.tokens_after, done.messages_before, done.messages_after)
    seen = (before.tokens, after.tokens, len(before.messages), len(after.messages))
    expect(told == seen, f"tokens and messages {seen}", told)
    ids = [entry.entry_id for entry in talk.history() if entry.in_context]
    expect(done.first_kept_entry_id in ids, "first_kept_entry_id in the view", done.first_kept_entry_id)


@check(
    "a-dry-run-changes-nothing",
    law="Methods: session/compact",
    says="`session/compact` with `dry_run` returns the result that the compaction would have, and changes "
    "nothing.",
    mend="Plan the compaction, count its tokens and answer, but write nothing.",
)
def dry_run(bench: Bench) -> None:
    """Compare a dry run with the compaction that follows. Expect the same numbers, and no change to the
    view by the dry run."""
    talk = bench.talk(*agent_turns(6))
    before = talk.context()

    dry = talk.compact(keep_recent=KEEP, dry_run=True)
    after = talk.context()
    done = talk.compact(keep_recent=KEEP)
    expect(after == before, "the view unchanged", f"{before.tokens} → {after.tokens} tokens")
    expect(dry.compaction_id is None, "no compaction_id", dry.compaction_id)
    foretold = (dry.messages_removed, dry.tokens_before)
    expect(
        foretold == (done.messages_removed, done.tokens_before),
        "the same messages_removed and tokens_before as in the compaction that follows",
        (dry, done),
    )


@check(
    "pictures-count-by-pixels",
    law="Never again: base64 counted as text",
    says="The tokens of an image are computed from its width and height in pixels, never from the length "
    "of its base64.",
    mend="Compute the tokens of an image block from its width and height.",
)
def pictures(bench: Bench) -> None:
    """Append an image with long base64 and few pixels. Expect a small size."""
    data = "iVBORw0KGgo" + "A" * 40_000
    picture = {"type": "image", "media_type": "image/png", "data": data, "width": 100, "height": 100}

    used = bench.talk().append({"role": "user", "content": [picture]}).decision.used
    expect(used < 3000, "fewer than 3,000 tokens for 100 × 100 pixels", used)


REPORTS: dict[str, dict[str, object]] = {
    "ours": {"input_tokens": 100, "output_tokens": 7, "cache_read_tokens": 30, "cache_write_tokens": 20},
    "OpenCode": {"input": 100, "output": 7, "reasoning": 0, "cache": {"read": 30, "write": 20}},
    "Anthropic": {
        "input_tokens": 100,
        "output_tokens": 7,
        "cache_read_input_tokens": 30,
        "cache_creation_input_tokens": 20,
    },
    "OpenAI": {
        "prompt_tokens": 150,
        "completion_tokens": 7,
        "total_tokens": 157,
        "prompt_tokens_details": {"cached_tokens": 50},
    },
    "Gemini": {"promptTokenCount": 150, "candidatesTokenCount": 7, "cachedContentTokenCount": 50},
}
"""Format -> the same usage report in this format: 150 input tokens, 50 of them cached, 7 output tokens."""


@check(
    "every-providers-report",
    law="Values: Usage",
    says="Usage reports of the same request give the same size in every provider's format, although the "
    "formats count differently: OpenAI's count of input tokens includes cached tokens, Anthropic's does not. "
    "The format is recognised by its fields.",
    mend="Convert usage reports in one place, and choose the conversion by the fields that the report has.",
)
def reports(bench: Bench) -> None:
    """Append the same usage report in each provider's format. Expect the same context size each time."""
    for shape, report in REPORTS.items():
        usage = bench.talk().append(user("Hello"), assistant("Hi."), usage=report).token_usage
        told = (usage.last_prompt_tokens, usage.current_context_tokens)
        expect(
            told == (150, 157),
            f"150 input tokens and a current size of 157 from the report in the format {shape}",
            told,
        )


@check(
    "a-report-of-an-older-epoch",
    law="Values: epoch",
    says="A usage report with an older epoch counts for the billed tokens, but never sets the current size "
    "of the context.",
    mend="Record the epoch of each context that is sent; use a size only if its epoch is the newest.",
)
def older_epoch(bench: Bench) -> None:
    """Report usage for an older and for the current epoch. Expect that only the report for the current epoch
    sets the context size."""
    talk = bench.talk(*turns(6, 200))
    old = talk.context().epoch
    done = talk.compact_or_fail(keep_recent=KEEP)
    new = talk.context().epoch

    report = {"input_tokens": 50_000, "output_tokens": 10}
    usage = talk.append(assistant(text(10)), usage=report, epoch=old).token_usage
    expect(new > old, "a higher epoch after the compaction", (old, new))
    expect(usage.total_tokens == 50_010, "50,010 tokens billed", usage)
    expect(
        usage.current_context_tokens == done.tokens_after + 10,
        f"a current size of {done.tokens_after + 10} tokens",
        usage,
    )
    fresh = talk.append(assistant(text(10)), usage=report, epoch=new).token_usage
    expect(
        fresh.current_context_tokens == 50_010,
        "a current size of 50,010 tokens, from the report with the current epoch",
        fresh,
    )


@check(
    "same-conversation-same-summary",
    law="Law 8",
    says="If the same conversation is compacted twice with the same settings, both compactions remove the "
    "same messages and, with `extract`, write the same summary.",
    mend="Plans and summaries must not depend on the clock, a process id or the order of a hash table.",
)
def same_summary(bench: Bench) -> None:
    """Compact the same conversation in two processes. Expect the same plan and the same summary."""
    done = []
    for _ in range(2):
        # A result that depends on a process's hash seed or counters differs only between processes.
        talk = bench.talk(*agent_turns(6), on=bench.fresh(), session_id="same")
        talk.compact_or_fail(keep_recent=KEEP)
        done.append((talk.texts(), talk.context().tokens))

    expect(done[0] == done[1], "two equal views after the compactions", done)


@check(
    "a-plan-changes-nothing",
    law="Methods: session/compact",
    says="`session/compact` with `plan_only` and without `dry_run` returns what would be removed, and "
    "changes nothing.",
    mend="Let `plan_only` imply `dry_run`.",
)
def plan_only(bench: Bench) -> None:
    """Ask only for a plan. Expect no change to context and history, and nothing to undo."""
    talk = bench.talk(*turns(18, 40))
    before = talk.context(), talk.history()
    planned = talk.compact(plan_only=True, keep_messages=4)

    expect(planned.compaction_id is None, "no compaction_id", planned.compaction_id)
    expect((talk.context(), talk.history()) == before, "context and history unchanged", "others")
    fault = talk.refusal("session/undo")
    expect(
        fault.code == 1011, ("error 1011 (NothingToUndo) from session/undo"), f"{fault.code}: {fault.message}"
    )


@check(
    "a-report-of-another-prompt",
    law="Values: epoch",
    says="If the system prompt changes, a new epoch starts. A usage report for a request from before the "
    "change then does not set the current size.",
    mend="Increase the epoch when the system prompt or the tools change.",
)
def other_prompt(bench: Bench) -> None:
    """Change the system prompt, then report the usage of a request from before the change. Expect that this
    report does not set the context size."""
    talk = bench.talk(*turns(2, 900))
    epoch = talk.context().epoch
    talk.peer.result(talk.ask("session/configure", system_prompt=text(20_000)), shapes.Nothing)
    late = {"input_tokens": 2400, "output_tokens": 2}
    done = talk.ask("turn/end", messages=[], epoch=epoch, usage=late)
    for prompt, asked in ((text(20_000), done), ("", None)):
        if asked is None:
            talk.peer.result(talk.ask("session/configure", system_prompt=prompt), shapes.Nothing)
            size = talk.state().token_usage.current_context_tokens
        else:
            size = talk.peer.result(asked, shapes.Reported).token_usage.current_context_tokens
        wanted = talk.context().tokens
        expect(size == wanted, f"a current size of {wanted:,} tokens, as in session/context", size)


CHECKS = (
    system_prompt_counts,
    smaller,
    second_time,
    measured,
    dry_run,
    pictures,
    reports,
    older_epoch,
    same_summary,
    plan_only,
    other_prompt,
)
"""The checks in the order in which they run."""
