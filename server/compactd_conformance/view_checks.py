"""What the next request holds: pairs, roles, the newest request, summaries and their files (laws 1, 6, 7)."""

from __future__ import annotations

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, Seen, check, expect
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
    Said,
    Talk,
    assistant,
    calls,
    result,
    text,
    turns,
    user,
    worked,
)

View = tuple[str, str, shapes.Context]
"""(What was done, format, context)."""


def _views(bench: Bench) -> tuple[View, ...]:
    """Views of sessions that lost calls, results and messages."""
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
        talk = bench.talk(*worked(2), *more)
        found += _seen(talk, name)
    for budget in BUDGETS:
        talk = bench.talk(*worked(6))
        talk.compact(**budget)
        found += _seen(talk, f"a compaction with {budget}")
        talk.append(*worked(1))
        found += _seen(talk, f"a compaction with {budget} and another turn")
    return tuple(found)


def _seen(talk: Talk, done: str) -> list[View]:
    return [(done, format, talk.context(format)) for format in FORMATS]


VIEWS = Seen(_views)


@check(
    "every-call-has-its-result",
    law="Law 1",
    says="No call stands in a request without its result right behind it, for any provider, however the "
    "conversation was cut or broken off.",
    mend="Cut only where no pair is parted; write an error result for a call that has none.",
)
def every_call_has_its_result(bench: Bench) -> None:
    for done, format, context in VIEWS.on(bench):
        lost = calls_without_result(steps_of(format, context.messages))
        expect(not lost, f"after {done}, in {format}, a result for every call", f"none for {lost}")


@check(
    "every-result-has-its-call",
    law="Law 1",
    says="No result stands in a request without its call before it, for any provider, however the "
    "conversation was cut or broken off.",
    mend="Never begin the kept part with a tool result; leave results out whose call is gone, and report "
    "them.",
)
def every_result_has_its_call(bench: Bench) -> None:
    for done, format, context in VIEWS.on(bench):
        orphans = results_without_call(steps_of(format, context.messages))
        expect(not orphans, f"after {done}, in {format}, a call for every result", f"none for {orphans}")


@check(
    "roles-as-providers-want-them",
    law="Law 1",
    says="Each provider gets the roles it knows, in an order it takes, and no empty message.",
    mend="Write each provider's shape from its own reference; see `session/context`, `format`.",
)
def roles(bench: Bench) -> None:
    for done, format, context in VIEWS.on(bench):
        wrong = wrong_roles(format, context)
        expect(not wrong, f"after {done}, a request that {format} accepts", wrong)


@check(
    "repairs-are-told",
    law="Law 1",
    says="What was mended for a provider is listed in `repairs`; what needed nothing has none.",
    mend="List every synthetic, moved and left-out result.",
)
def repairs(bench: Bench) -> None:
    whole = bench.talk(*worked(1)).context().repairs
    broken = bench.talk(user("Go."), calls(("o", "run", {})), user("Stop."), result("no", "x"), user("On."))

    seen = [bytes(one) for one in broken.context().repairs]
    expect(not whole, "no repairs of a whole conversation", whole)
    expect(len(seen) == 2, "two repairs: a missing and an orphan result", seen)


REQUEST = "  Fix `Loader.open`\tin src/loader.py,\n\n    keep ETag caching — und GRÖSSE 😀.  Not more!  "
"""White space, case and marks that rewording would change."""


@check(
    "newest-request-word-for-word",
    law="Law 6",
    says="The newest request of the user stands in the next request word for word, whatever was compacted.",
    mend="Keep the last user message with text that is no tool result and not synthetic; pin it if need be.",
)
def newest_request(bench: Bench) -> None:
    later: tuple[Message, ...] = (*worked(3)[1:], user("go on", meta={"synthetic": True}))
    behind = tuple(one for one in later if one["role"] != "user" or "meta" in one)
    for budget in BUDGETS:
        talk = bench.talk(*turns(4, 100), user(REQUEST), *behind)
        talk.compact(**budget)

        seen = talk.texts()
        expect(REQUEST in seen, f"with {budget}, the request {REQUEST!r}", seen)


@check(
    "a-request-that-cannot-fit",
    law="Law 6",
    says="Where the newest request alone does not fit, the answer is 1008 with the floor: never a request "
    "cut short.",
    mend="Count system, tools, newest request and the smallest summary; refuse below that.",
)
def cannot_fit(bench: Bench) -> None:
    talk = bench.talk(*turns(4, 100), user(text(3000)))

    fault = talk.refusal("session/compact", target_tokens=500)
    expect(fault.code == 1008, "1008", f"{fault.code}: {fault.message}")
    expect(b"floor" in bytes(fault.data), "the floor in data", bytes(fault.data))


@check(
    "thinking-is-verbatim-or-absent",
    law="Law 1",
    says="A model's reasoning goes back with its signature and every character, or not at all.",
    mend="Never trim, summarise or join thinking blocks.",
)
def thinking(bench: Bench) -> None:
    thought = {"type": "thinking", "text": "  hm,\n so ", "signature": "c2lnbmVk"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "So."}]}
    talk = bench.talk(user("Why?"), answer, user("And?"), model="anthropic/claude-sonnet-4-5")

    for format in ("neutral", "anthropic"):
        body = talk.peer.answer(talk.ask("session/context", format=format)).body
        has_all = rb"  hm,\n so " in body and b"c2lnbmVk" in body
        expect(has_all or b"c2lnbmVk" not in body, f"in {format} the thinking whole, or nothing of it", body)


@check(
    "pins-stay",
    law="Values: meta.pinned, session/pin",
    says="A pinned message stands in every later view.",
    mend="Carry pinned messages over each compaction, beside the summary.",
)
def pins(bench: Bench) -> None:
    talk = bench.talk(user("Never touch the API."), *turns(6, 200))
    first = talk.history()[0].entry_id
    talk.peer.result(talk.ask("session/pin", entry_ids=[first]), shapes.Nothing)

    done = talk.compacted(keep_recent=KEEP)
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
    first = talk.compacted(keep_recent=KEEP)
    talk.append(*used("4", "edit", "src/b.py", old_string="x", new_string="y"), *turns(4, 200, 9))
    return first, talk.compacted(keep_recent=KEEP)


CHANGED = Seen(_changed_twice)


@check(
    "a-changed-file-is-not-a-read-file",
    law="Law 7",
    says="A file that was read and then modified is listed as modified only.",
    mend="Take what was modified out of what was read, over all compactions.",
)
def changed_file(bench: Bench) -> None:
    first, second = CHANGED.on(bench)

    for done in (first, second):
        both = set(done.read_files) & set(done.modified_files)
        expect(not both, "no file both read and modified", both)
    expect("src/a.py" in first.modified_files, "src/a.py as modified", first.modified_files)


@check(
    "files-accumulate",
    law="Law 7",
    says="No file leaves the lists by being compacted twice.",
    mend="Start from the lists of the summary that is compacted with the rest.",
)
def files_accumulate(bench: Bench) -> None:
    _, second = CHANGED.on(bench)

    seen = {*second.read_files, *second.modified_files}
    expect({"src/a.py", "src/b.py"} <= seen, "src/a.py and src/b.py", seen)


@check(
    "a-summary-is-a-message",
    law="A compaction: the summary message",
    says="The summary stands in the view as one user message marked `meta.type: compaction_summary`, and "
    "the previous summary is not sent beside it.",
    mend="Replace the older summary by the new one.",
)
def one_summary(bench: Bench) -> None:
    talk = bench.talk(*turns(6, 200))
    for n in (10, 20):
        talk.compacted(keep_recent=KEEP)
        talk.append(*turns(6, 200, n))
    talk.compacted(keep_recent=KEEP)

    marked = [raw for raw in talk.context().messages if b'"compaction_summary"' in bytes(raw)]
    roles = [read(raw, Said).role for raw in marked]
    expect(roles == ["user"], "one summary, of the role user", roles)


CHECKS = (
    every_call_has_its_result,
    every_result_has_its_call,
    roles,
    repairs,
    newest_request,
    cannot_fit,
    thinking,
    pins,
    changed_file,
    files_accumulate,
    one_summary,
)
"""In the order in which they are run."""
