"""Checks of the next request: pairs, roles, the newest request, summaries and their files (laws 1, 6, 7)."""

from __future__ import annotations

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, SharedValue, check, expect
from compactd_conformance.frames import read
from compactd_conformance.requests import (
    FORMATS,
    calls_without_result,
    results_without_call,
    steps_of,
    wrong_roles,
)
from compactd_conformance.talk import (
    BUDGETS,
    KEEP,
    Message,
    NeutralMessage,
    Talk,
    agent_turns,
    assistant,
    calls,
    result,
    text,
    turns,
    user,
)

View = tuple[str, str, shapes.Context]
"""(what was done to the session, format, context in that format)."""


def _views(bench: Bench) -> tuple[View, ...]:
    """Return contexts in each format: of sessions whose tool calls and results do not match, and of sessions
    after a compaction.
    """
    open_call = (user("Go on."), calls(("open", "run", {})), user("Never mind."))
    orphan = (result("nobody", "lost"), user("So?"), assistant("So."))
    late = (
        calls(("l1", "run", {}), ("l2", "read", {"path": "b.py"})),
        result("l2", "two"),
        result("l1", "one"),
        assistant("Both."),
    )
    again = (calls(("a0", "run", {})), result("a0", "once more"), assistant("Again."))
    broken = {
        "an open call": open_call,
        "an orphan result": orphan,
        "results swapped": late,
        "a call_id used twice": again,
    }
    found: list[View] = []
    for name, more in broken.items():
        talk = bench.talk(*agent_turns(2), *more)
        found += _views_of(talk, name)
    for budget in BUDGETS:
        talk = bench.talk(*agent_turns(6))
        talk.compact(**budget)
        found += _views_of(talk, f"a compaction with {budget}")
        talk.append(*agent_turns(1))
        found += _views_of(talk, f"a compaction with {budget} and another turn")
    return tuple(found)


def _views_of(talk: Talk, done: str) -> list[View]:
    return [(done, format, talk.context(format)) for format in FORMATS]


VIEWS = SharedValue(_views)


@check(
    "every-call-has-its-result",
    law="Law 1",
    says="In the requests for all providers, each tool call is directly followed by its result, wherever a "
    "compaction cut the conversation and even if a turn was interrupted.",
    mend="Never cut between a call and its result; add a result that reports an error to a call that has "
    "none.",
)
def every_call_has_its_result(bench: Bench) -> None:
    """Look at all views in all formats. Expect that no call is without its result."""
    for done, format, context in VIEWS.on(bench):
        lost = calls_without_result(steps_of(format, context.messages))
        expect(not lost, f"after {done}, in {format}, a result for every call", f"none for {lost}")


@check(
    "every-result-has-its-call",
    law="Law 1",
    says="In the requests for all providers, each tool result comes after its call, wherever a compaction "
    "cut the conversation and even if a turn was interrupted.",
    mend="Never choose a tool result as the first message that a compaction keeps; leave out results whose "
    "call is missing, and list them in `repairs`.",
)
def every_result_has_its_call(bench: Bench) -> None:
    """Look at all views in all formats. Expect that no result is without its call."""
    for done, format, context in VIEWS.on(bench):
        orphans = results_without_call(steps_of(format, context.messages))
        expect(not orphans, f"after {done}, in {format}, a call for every result", f"none for {orphans}")


@check(
    "roles-as-providers-want-them",
    law="Law 1",
    says="The requests for each provider have only roles that it knows, in an order that it accepts, and "
    "no empty message.",
    mend="Follow the provider's API reference for each `format` of `session/context`.",
)
def roles(bench: Bench) -> None:
    """Look at all views in all formats. Expect only roles that the provider knows, in an accepted order,
    and no empty message."""
    for done, format, context in VIEWS.on(bench):
        wrong = wrong_roles(format, context)
        expect(not wrong, f"after {done}, a request that providers with the format {format} accept", wrong)


@check(
    "repairs-are-told",
    law="Law 1",
    says="If messages are added, moved or left out so that a provider accepts the request, `repairs` lists "
    "them. For a complete conversation, `repairs` is empty.",
    mend="List every tool result that was added, moved or left out.",
)
def repairs(bench: Bench) -> None:
    """Compare a complete conversation with one whose tool calls and results do not match. Expect entries in
    `repairs` only for the second."""
    whole = bench.talk(*agent_turns(1)).context().repairs
    broken = bench.talk(user("Go."), calls(("o", "run", {})), user("Stop."), result("no", "x"), user("On."))

    seen = [bytes(one) for one in broken.context().repairs]
    expect(not whole, "no repairs for a complete conversation", whole)
    expect(
        len(seen) == 2,
        "two repairs: one for a call without a result, one for a result without a call",
        seen,
    )


REQUEST = "  Fix `Loader.open`\tin src/loader.py,\n\n    keep ETag caching — und GRÖSSE 😀.  Not more!  "
"""A request with unusual white space, letters and punctuation. If a program does not keep it word for word,
it changes.
"""


@check(
    "newest-request-word-for-word",
    law="Law 6",
    says="After any compaction, the next model request contains the user's newest request word for word, "
    "unless it takes more than a third of `target_tokens`.",
    mend="In a compaction, keep the last user message that has text and is neither a tool result nor "
    "written by a program; pin it if necessary.",
)
def newest_request(bench: Bench) -> None:
    """Compact with each budget. Expect the newest request word for word in the view."""
    later: tuple[Message, ...] = (*agent_turns(3)[1:], user("go on", meta={"synthetic": True}))
    behind = tuple(one for one in later if one["role"] != "user" or "meta" in one)
    for budget in BUDGETS:
        talk = bench.talk(*turns(4, 100), user(REQUEST), *behind)
        talk.compact(**budget)

        seen = talk.texts()
        expect(REQUEST in seen, f"with {budget}, the request {REQUEST!r}", seen)


@check(
    "a-request-larger-than-the-target",
    law="Law 6",
    says="If the user's newest request alone is too large for `target_tokens`, the view contains it "
    "condensed: with its role, its first and last words, and how to read the whole. The history keeps the "
    "whole.",
    mend="Shorten what was pasted into the request, keep what the user typed, and mark what is gone.",
)
def condensed_request(bench: Bench) -> None:
    """Compact to a target that is smaller than the newest request. Expect the request condensed in the view,
    and whole in the history."""
    asked = f"Mend the loader.\n\n{text(3000)}\n\nThen tell me why."
    talk = bench.talk(*turns(4, 100), user(asked))

    talk.compact_or_fail(target_tokens=500)
    seen = talk.texts()
    shown = [one for one in seen if one.startswith("Mend the loader.") and one.endswith("Then tell me why.")]
    expect(len(shown) == 1 and "session/expand" in shown[0], "the condensed request in the view", seen)
    expect(asked in talk.history_texts(), "the whole request in the history", talk.history_texts()[-1][:80])


@check(
    "a-request-that-cannot-fit",
    law="Law 6",
    says="If a target is too small even for the condensed request, the user's constraints and one line of "
    "state, the answer is error 1008 (CannotFit) with `floor`, the smallest possible size, and "
    "`least_target`, the least target that would do.",
    mend="Count system prompt, tools, newest request and the smallest summary, and refuse a target below "
    "their total.",
)
def cannot_fit(bench: Bench) -> None:
    """Compact to a target of 20 tokens. Expect error 1008 (cannot fit) with the floor and the least target in
    its data. Compact to this target. Expect a context of at most that size."""
    talk = bench.talk(*turns(4, 100), user(text(3000)))

    fault = talk.refusal("session/compact", target_tokens=20)
    expect(fault.code == 1008, "error 1008", f"{fault.code}: {fault.message}")
    expect(b"floor" in bytes(fault.data), "the floor in the error's data", bytes(fault.data))
    least = read(fault.data, shapes.CannotFit).least_target
    done = talk.compact_or_fail(target_tokens=least)
    expect(done.tokens_after <= least, f"at most {least} tokens after the compaction", done.tokens_after)


@check(
    "thinking-is-verbatim-or-absent",
    law="Law 1",
    says="A model's signed reasoning (thinking block) is sent back to its provider complete and with its "
    "signature, or not at all.",
    mend="Never trim, summarise or join thinking blocks.",
)
def thinking(bench: Bench) -> None:
    """Append signed thinking and request the context in two formats. Expect the thinking complete with its
    signature, or not at all."""
    thought = {"type": "thinking", "text": "  hm,\n so ", "signature": "c2lnbmVk"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "So."}]}
    talk = bench.talk(user("Why?"), answer, user("And?"), model="anthropic/claude-sonnet-4-5")

    for format in ("neutral", "anthropic"):
        body = talk.peer.answer(talk.ask("session/context", format=format)).body
        has_all = rb"  hm,\n so " in body and b"c2lnbmVk" in body
        expect(
            has_all or b"c2lnbmVk" not in body,
            f"the complete thinking block in {format}, or no part of it",
            body,
        )


@check(
    "pins-stay",
    law="Values: meta.pinned, session/pin",
    says="If a message is pinned, every later view contains it.",
    mend="In each compaction, keep pinned messages in addition to the summary.",
)
def pins(bench: Bench) -> None:
    """Pin a message and compact. Expect the message in the view."""
    talk = bench.talk(user("Never touch the API."), *turns(6, 200))
    first = talk.history()[0].entry_id
    talk.peer.result(talk.ask("session/pin", entry_ids=[first]), shapes.Nothing)

    done = talk.compact_or_fail(keep_recent=KEEP)
    expect(first in done.pinned_entry_ids, f"{first} in pinned_entry_ids", done.pinned_entry_ids)
    expect("Never touch the API." in talk.texts(), "the pinned message in the view", talk.texts())


def _changed_twice(bench: Bench) -> tuple[shapes.Compaction, shapes.Compaction]:
    def used(id: str, name: str, path: str, **more: object) -> tuple[Message, ...]:
        return calls((id, name, {"path": path, **more})), result(id, text(60))

    talk = bench.talk(
        user("Fix a.py."),
        *used("1", "read", "src/a.py"),
        *used("2", "read", "src/b.py"),
        *used("3", "edit", "src/a.py", old_string="x", new_string="y"),
        *turns(4, 200),
    )
    first = talk.compact_or_fail(keep_recent=KEEP)
    talk.append(*used("4", "edit", "src/b.py", old_string="x", new_string="y"), *turns(4, 200, 9))
    return first, talk.compact_or_fail(keep_recent=KEEP)


CHANGED = SharedValue(_changed_twice)


@check(
    "a-changed-file-is-not-a-read-file",
    law="Law 7",
    says="If a file was read and then modified, a compaction lists it only as a modified file.",
    mend="Remove modified files from the list of read files, including those read before an earlier "
    "compaction.",
)
def changed_file(bench: Bench) -> None:
    """Read and edit a file, and compact twice. Expect the file only in the list of modified files."""
    first, second = CHANGED.on(bench)

    for done in (first, second):
        both = set(done.read_files) & set(done.modified_files)
        expect(not both, "no file in both lists", both)
    expect("src/a.py" in first.modified_files, "src/a.py in the list of modified files", first.modified_files)


@check(
    "files-accumulate",
    law="Law 7",
    says="The lists of files of a second compaction contain every file from the lists of the first.",
    mend="Start with the lists of the summary that the new one replaces, and add to them.",
)
def files_accumulate(bench: Bench) -> None:
    """Compact twice. Expect the second summary to list all files of the first."""
    _, second = CHANGED.on(bench)

    seen = {*second.read_files, *second.modified_files}
    expect({"src/a.py", "src/b.py"} <= seen, "src/a.py and src/b.py in the lists", seen)


@check(
    "a-summary-is-a-message",
    law="A compaction: the summary message",
    says="The summary is one user message in the view, marked `meta.type: compaction_summary`. The view no "
    "longer contains the summary of an earlier compaction.",
    mend="In each compaction, replace the earlier summary by the new one.",
)
def one_summary(bench: Bench) -> None:
    """Compact three times. Expect exactly one summary in the view."""
    talk = bench.talk(*turns(6, 200))
    for n in (10, 20):
        talk.compact_or_fail(keep_recent=KEEP)
        talk.append(*turns(6, 200, n))
    talk.compact_or_fail(keep_recent=KEEP)

    marked = [raw for raw in talk.context().messages if b'"compaction_summary"' in bytes(raw)]
    roles = [read(raw, NeutralMessage).role for raw in marked]
    expect(roles == ["user"], "one summary, with the role user", roles)


CHECKS = (
    every_call_has_its_result,
    every_result_has_its_call,
    roles,
    repairs,
    newest_request,
    condensed_request,
    cannot_fit,
    thinking,
    pins,
    changed_file,
    files_accumulate,
    one_summary,
)
"""The checks in the order in which they run."""
