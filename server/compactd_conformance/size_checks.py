"""Checks of the size of requests, and of what a compaction must save (laws 2 and 8)."""

from __future__ import annotations

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, check, expect
from compactd_conformance.talk import BUDGETS, KEEP, assistant, text, turns, user, worked


@check(
    "the-system-prompt-counts",
    law="Law 2",
    says="Sizes include the whole request: system prompt and tools count in `session/context`, in the "
    "decision, and before and after a compaction.",
    mend="Count everything that is sent, including system prompt and tool schemas.",
)
def system_prompt_counts(bench: Bench) -> None:
    """Compare the sizes of a session with and without system prompt and tools."""
    tool = {"name": "run", "description": text(100), "input_schema": {"type": "object", "properties": {}}}
    bare = bench.talk(*turns(6, 200))
    full = bench.talk(*turns(6, 200), system_prompt=text(500), tools=[tool])

    sizes = [(talk.context().tokens, talk.append(user("?")).decision.used) for talk in (bare, full)]
    grown = [after - before for before, after in zip(*sizes, strict=True)]
    expect(min(grown) >= 590, "500 tokens of system prompt and 100 of a tool in both sizes", f"{grown} more")
    done = [talk.compacted(keep_recent=KEEP) for talk in (bare, full)]
    more = (done[1].tokens_before - done[0].tokens_before, done[1].tokens_after - done[0].tokens_after)
    expect(min(more) >= 590, "the same in tokens_before and tokens_after", f"{more} more")


@check(
    "smaller-or-not-compacted",
    law="Law 2",
    says="`compacted: true` means that tokens_after is below tokens_before. If the context would not "
    "shrink, the answer is `compacted: false` with a reason, and nothing changes.",
    mend="Count the new request before using it; refuse it if it is not smaller.",
)
def smaller(bench: Bench) -> None:
    """Compact conversations that can and that cannot become smaller."""
    # So little was said that a summary would be longer.
    short = [one for n in range(4) for one in (user(f"{n}?"), assistant("ok"))]
    for messages, params in (
        (short, {"keep_messages": 2}),
        (short[:4], {"keep_messages": 1}),
        (worked(6), {"keep_recent": KEEP}),
    ):
        talk = bench.talk(*messages)
        before = talk.context()
        done = talk.compact(**params)
        after = talk.context()
        if done.compacted:
            expect(done.tokens_after < done.tokens_before, "fewer tokens after than before", done)
            expect(done.tokens_saved == done.tokens_before - done.tokens_after, "tokens_saved as it is", done)
        else:
            _nothing_done(done)
            expect(after == before, "the view as it was", f"{before.tokens} → {after.tokens} tokens")


def _nothing_done(done: shapes.Compaction) -> None:
    expect(bool(done.reason), "a reason that a person understands", done)
    expect(done.tokens_after == done.tokens_before, "tokens_after = tokens_before", done)
    expect(done.compaction_id is None, "no compaction_id", done)


@check(
    "the-second-time-nothing",
    law="Law 2",
    says="A second compaction with the same budget, with nothing appended in between, answers "
    "`compacted: false`.",
    mend="Search for a cut point only in what came since the last compaction.",
)
def second_time(bench: Bench) -> None:
    """Compact twice with each budget."""
    for budget in BUDGETS:
        talk = bench.talk(*worked(6))
        talk.compacted(**budget)
        before = talk.context()

        again = talk.compact(**budget)
        expect(not again.compacted, f"with {budget} again: compacted: false", again)
        _nothing_done(again)
        expect(talk.context() == before, "the view as it was", talk.context().tokens)


@check(
    "what-is-said-is-what-is-there",
    law="Law 2",
    says="tokens_before, tokens_after, the message counts and first_kept_entry_id agree with "
    "`session/context` before and after.",
    mend="Measure before and after with the whole request and the same estimator.",
)
def measured(bench: Bench) -> None:
    """Compare the numbers of a compaction with the contexts around it."""
    talk = bench.talk(*worked(6), system_prompt=text(50))
    before = talk.context()
    done = talk.compacted(keep_recent=KEEP)
    after = talk.context()

    told = (done.tokens_before, done.tokens_after, done.messages_before, done.messages_after)
    seen = (before.tokens, after.tokens, len(before.messages), len(after.messages))
    expect(told == seen, f"tokens and messages {seen}", told)
    ids = [entry.entry_id for entry in talk.history() if entry.in_context]
    expect(done.first_kept_entry_id in ids, "first_kept_entry_id in the view", done.first_kept_entry_id)


@check(
    "a-dry-run-changes-nothing",
    law="Methods: session/compact",
    says="`dry_run` returns what would happen and changes nothing.",
    mend="Plan, count and answer; write nothing.",
)
def dry_run(bench: Bench) -> None:
    """Compare a dry run with the compaction that follows."""
    talk = bench.talk(*worked(6))
    before = talk.context()

    dry = talk.compact(keep_recent=KEEP, dry_run=True)
    after = talk.context()
    done = talk.compact(keep_recent=KEEP)
    expect(after == before, "the view as it was", f"{before.tokens} → {after.tokens} tokens")
    expect(dry.compaction_id is None, "no compaction_id", dry.compaction_id)
    foretold = (dry.messages_removed, dry.tokens_before)
    expect(foretold == (done.messages_removed, done.tokens_before), "what then happens", (dry, done))


@check(
    "pictures-count-by-pixels",
    law="Never again: base64 counted as text",
    says="An image counts by its pixels, never by the length of its base64.",
    mend="Count an image block by its width and height.",
)
def pictures(bench: Bench) -> None:
    """Append an image with long base64 and few pixels."""
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
"""The same report in each provider's form: 150 input tokens, 50 of them cached, 7 output tokens."""


@check(
    "every-providers-report",
    law="Values: Usage",
    says="The same usage in every provider's form gives the same size. The form is recognised by its "
    "fields: OpenAI's input includes what was cached, Anthropic's does not.",
    mend="Normalise reports in one place, by the fields they have.",
)
def reports(bench: Bench) -> None:
    """Append the same report in each provider's form."""
    for shape, report in REPORTS.items():
        usage = bench.talk().append(user("Hello"), assistant("Hi."), usage=report).token_usage
        told = (usage.last_prompt_tokens, usage.current_context_tokens)
        expect(told == (150, 157), f"150 tokens in, 157 now, of the report of {shape}", told)


@check(
    "a-report-of-an-older-epoch",
    law="Values: epoch",
    says="A usage report with an older epoch counts for billing and never sets the current size.",
    mend="Record the epoch of each context that is sent; use a size only if its epoch is the newest.",
)
def older_epoch(bench: Bench) -> None:
    """Report usage for an older and for the current epoch."""
    talk = bench.talk(*turns(6, 200))
    old = talk.context().epoch
    done = talk.compacted(keep_recent=KEEP)
    new = talk.context().epoch

    report = {"input_tokens": 50_000, "output_tokens": 10}
    usage = talk.append(assistant(text(10)), usage=report, epoch=old).token_usage
    expect(new > old, "a higher epoch after a compaction", (old, new))
    expect(usage.total_tokens == 50_010, "50,010 tokens billed", usage)
    expect(usage.current_context_tokens == done.tokens_after + 10, f"{done.tokens_after + 10} now", usage)
    fresh = talk.append(assistant(text(10)), usage=report, epoch=new).token_usage
    expect(fresh.current_context_tokens == 50_010, "50,010 now, by a report of this epoch", fresh)


@check(
    "same-conversation-same-summary",
    law="Law 8",
    says="The same conversation with the same settings gives the same plan and, with `extract`, the "
    "same summary.",
    mend="Plans and summaries must not depend on the clock, a process id or the order of a hash table.",
)
def same_summary(bench: Bench) -> None:
    """Compact the same conversation in two processes."""
    done = []
    for _ in range(2):
        # Results that depend on hashes or counters of a process differ only in another process.
        talk = bench.talk(*worked(6), on=bench.fresh(), session_id="same")
        talk.compacted(keep_recent=KEEP)
        done.append((talk.texts(), talk.context().tokens))

    expect(done[0] == done[1], "two equal views", done)


@check(
    "a-plan-changes-nothing",
    law="Methods: session/compact",
    says="`plan_only` alone returns what would be removed and changes nothing.",
    mend="Let `plan_only` imply `dry_run`.",
)
def plan_only(bench: Bench) -> None:
    """Ask for a plan, and compare context and history."""
    talk = bench.talk(*turns(18, 40))
    before = talk.context(), talk.history()
    planned = talk.compact(plan_only=True, keep_messages=4)

    expect(planned.compaction_id is None, "no compaction_id", planned.compaction_id)
    expect((talk.context(), talk.history()) == before, "context and history as they were", "others")
    fault = talk.refusal("session/undo")
    expect(fault.code == 1011, "1011: nothing to undo", f"{fault.code}: {fault.message}")


@check(
    "a-report-of-another-prompt",
    law="Values: epoch",
    says="A changed system prompt starts a new epoch: a report for an earlier request sets no size.",
    mend="Raise the epoch when the system prompt or the tools change.",
)
def other_prompt(bench: Bench) -> None:
    """Change the system prompt before a usage report arrives."""
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
        expect(size == wanted, f"the {wanted:,} tokens of session/context", size)


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
