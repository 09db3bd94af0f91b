"""Checks of events, and of the requests that are answered while a compaction runs.

No clock decides whether a compaction still runs, only the order of messages: the compaction waits for a
summary from the suite's own model, and the check decides when that model answers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, SharedValue, check, expect
from compactd_conformance.frames import Event, ReceivedMessage, read
from compactd_conformance.peer import Peer
from compactd_conformance.talk import KEEP, Talk, agent_turns, assistant, turns, user

MODEL = "openai-chat/held"

FENCE = 50
"""The number of pings that `fence` sends. After their answers, a check expects no more messages, except those
that wait for a model or for the client.
"""


def fence(peer: Peer, is_there: Callable[[], bool] = lambda: False) -> None:
    """Send `FENCE` pings, each after the answer to the one before. Messages that wait for nothing else arrive
    in the meantime. Return early as soon as `is_there` is true.
    """
    for _ in range(FENCE):
        if is_there():
            return
        peer.call("daemon/ping", {}, shapes.Nothing)


class HeldCompaction:
    """A running compaction. Its model does not answer before `release_after` is called."""

    def __init__(self, bench: Bench, talk: Talk) -> None:
        self.talk = talk
        self.peer = talk.peer
        self._model = bench.model
        self._model.hold()
        before = self.peer.now
        self.id = talk.ask("session/compact", keep_recent=KEEP, strategy="summarize", model=MODEL)
        self.start = self.peer.event(talk.id, "compaction_start", before)

    def end(self) -> Event:
        """Wait for the compaction's event `compaction_end` and return it."""
        return self.peer.event(self.talk.id, "compaction_end", self.start.at)

    def release_after(self, *ids: int) -> None:
        """Give the program time to answer the requests with these ids, then let the compaction continue."""
        fence(self.peer, lambda: all(self.peer.answers(id) for id in ids))
        self._model.release()

    def expect_before_end(self, **asked: int) -> None:
        """Raise `Broken` if a request was answered after the compaction ended. `asked`: the name of each
        request -> its id.
        """
        late = [name for name, id in asked.items() if self.peer.answer(id).at > self.end().at]
        expect(not late, f"{', '.join(asked)} answered before compaction_end", f"after it: {', '.join(late)}")


def held_compaction(bench: Bench, home: Path | None = None) -> HeldCompaction:
    """Start a compaction that runs until `HeldCompaction.release_after` is called. It runs in the shared
    process. If `home` is given, it runs in a new process with this data folder.
    """
    peer = bench.peer if home is None else bench.fresh(home)
    return HeldCompaction(bench, bench.talk(*turns(6, 200), on=peer))


@check(
    "state-does-not-wait",
    law="Transport: a running compaction",
    says="`agent/state`, `daemon/ping` and other sessions never wait for a running compaction.",
    mend="Answer these requests from memory, and do not compact in the loop that reads requests.",
)
def state_does_not_wait(bench: Bench) -> None:
    """Ask for the state, a ping and another session while a compaction runs. Expect answers before the
    compaction ends."""
    held = held_compaction(bench)
    state = held.talk.ask("agent/state")
    ping = held.peer.ask("daemon/ping")
    other = held.peer.ask("session/start", {"session_id": "other"})
    held.release_after(state, ping, other)

    held.expect_before_end(**{"agent/state": state, "daemon/ping": ping, "session/start": other})
    seen = held.peer.result(state, shapes.State)
    told = (seen.status, seen.compaction.running)
    expect(told == ("compacting", True), "the status `compacting`, and compaction.running: true", told)


@check(
    "reading-and-appending-go-on",
    law="Transport: a running compaction",
    says="`session/append`, `session/context`, `session/history` and `session/search` are answered while a "
    "compaction runs. Messages that are appended meanwhile come after the summary in the view.",
    mend="Let a running compaction block only other compactions of the session, not all of its requests.",
)
def reading_goes_on(bench: Bench) -> None:
    """Append and read while a compaction runs. Expect answers before the compaction ends, and the appended
    messages after the summary."""
    held = held_compaction(bench)
    asked = {
        "session/append": held.talk.ask("session/append", messages=[user("And one more thing.")]),
        "session/context": held.talk.ask("session/context"),
        "session/history": held.talk.ask("session/history"),
        "session/search": held.talk.ask("session/search", query="looked"),
    }
    held.release_after(*asked.values())

    held.expect_before_end(**asked)
    done = held.peer.result(held.id, shapes.Compaction)
    expect(done.compacted, "the compaction completed", done.reason)
    texts = held.talk.texts()
    expect(texts[-1:] == ("And one more thing.",), "the appended message at the end of the view", texts)


@check(
    "a-second-change-is-busy",
    law="Errors: 1002",
    says="While a compaction runs, a second compaction, undo, redo and delete of the same session answer "
    "error 1002 (SessionBusy).",
    mend="Refuse requests that change the view immediately; never queue a second compaction.",
)
def second_change(bench: Bench) -> None:
    """Send requests that change the view while a compaction runs. Expect error 1002 (session busy) for
    each."""
    held = held_compaction(bench)
    methods = ("session/compact", "session/undo", "session/redo", "session/delete")
    asked = {method: held.talk.ask(method) for method in methods}
    held.release_after(*asked.values())

    held.expect_before_end(**asked)
    codes = {method: held.peer.error_answer(id).code for method, id in asked.items()}
    expect(set(codes.values()) == {1002}, "error 1002 for each of the four requests", codes)


@check(
    "a-cancelled-compaction",
    law="Transport: $/cancelRequest",
    says="A cancelled request is answered once, with error -32800 (Cancelled). A cancelled compaction ends "
    "with the status `cancelled` and does not change the view.",
    mend="Stop the work, send `compaction_end`, then answer the request once.",
)
def cancelled(bench: Bench) -> None:
    """Cancel a compaction while it runs. Expect one answer, error -32800 (cancelled), and an unchanged
    view."""
    held = held_compaction(bench)
    before = held.talk.context()
    held.peer.notify("$/cancelRequest", {"id": held.id})

    fault, end = held.peer.error_answer(held.id), held.end()
    expect(fault.code == -32800, "error -32800", f"{fault.code}: {fault.message}")
    expect(end.status == "cancelled", "compaction_end with the status cancelled", end)
    expect(held.talk.context() == before, "the view unchanged", held.talk.context().tokens)
    fence(held.peer)
    expect(
        len(held.peer.answers(held.id)) == 1,
        "one answer to the cancelled request",
        held.peer.answers(held.id),
    )


@check(
    "an-empty-summary",
    law="Never again: an empty summary accepted",
    says="If the model that summarises returns an empty answer, the answer is not used as the summary. "
    "Another strategy is used, or nothing is compacted.",
    mend="Check that the model's answer is a summary before you use it.",
)
def empty_summary(bench: Bench) -> None:
    """Let the model answer with an empty summary. Expect that another strategy is used and the context is
    not emptied."""
    bench.model.release("")
    done = bench.talk(*turns(6, 200)).compact(keep_recent=KEEP, strategy="summarize", model=MODEL)
    expect(
        not done.compacted or len(done.summary) > 50, ("a summary that is not empty, or no compaction"), done
    )
    expect(done.strategy != "summarize" or not done.compacted, "a strategy other than summarize", done)


# --- events -------------------------------------------------------------------------------------------


def _eventful(bench: Bench) -> tuple[Event, ...]:
    """Return all events of a session in which compactions were done, refused, skipped and cancelled."""
    talk = bench.talk(*agent_turns(6))
    peer = talk.peer
    talk.compact(keep_recent=KEEP)
    talk.compact(keep_recent=KEEP)
    talk.compact(keep_recent=KEEP, dry_run=True)
    peer.answer(talk.ask("session/undo"))
    peer.answer(talk.ask("session/redo"))
    talk.append(*turns(6, 200), user("x" * 8000))
    peer.answer(talk.ask("session/compact", target_tokens=20))
    held = HeldCompaction(bench, talk)
    peer.notify("$/cancelRequest", {"id": held.id})
    peer.answer(held.id)
    talk.compact(keep_recent=KEEP)
    talk.append(assistant("So."))
    fence(peer)
    return peer.events(talk.id)


EVENTS = SharedValue(_eventful)


@check(
    "every-start-has-its-end",
    law="Notifications",
    says="Every `compaction_start` is followed by exactly one `compaction_end` with its compaction_id "
    "(done, skipped, failed or cancelled), and then by a `usage_update`.",
    mend="Send `compaction_end` in a single place in the code that every outcome of a compaction passes "
    "through.",
)
def start_has_end(bench: Bench) -> None:
    """Look at all events. Expect exactly one `compaction_end`, and then a `usage_update`, after each
    `compaction_start`."""
    events = EVENTS.on(bench)

    starts = [event for event in events if event.type == "compaction_start"]
    expect(len(starts) >= 3, "a compaction_start for each compaction that began", events)
    for start in starts:
        after = [event for event in events if event.at > start.at]
        ends = [e for e in after if e.type == "compaction_end" and e.compaction_id == start.compaction_id]
        expect(len(ends) == 1, f"one compaction_end for {start.compaction_id}", f"{len(ends)}")
        usage = [event for event in after if event.type == "usage_update" and event.at > ends[0].at]
        expect(bool(usage), f"a usage_update after the compaction_end of {start.compaction_id}", "none")


@check(
    "every-end-has-its-start",
    law="Notifications",
    says="Every `compaction_end` comes after a `compaction_start` with the same compaction_id.",
    mend="If a compaction is refused before it starts, answer the request and send no `compaction_end`.",
)
def end_has_start(bench: Bench) -> None:
    """Look at all events. Expect a `compaction_start` before each `compaction_end`."""
    open_ids: set[str] = set()
    for event in EVENTS.on(bench):
        if event.type == "compaction_start":
            open_ids.add(event.compaction_id)
        elif event.type == "compaction_end":
            expect(
                event.compaction_id in open_ids,
                f"a compaction_start of {event.compaction_id} before its compaction_end",
                event,
            )
            open_ids.discard(event.compaction_id)


@check(
    "seq-has-no-gap",
    law="Notifications: seq",
    says="`seq` starts at 1 each time a session is opened and rises by one with each event. "
    "`session/start` returns the `seq` of the last event that was sent.",
    mend="Number events where they are sent, with one counter per session.",
)
def seq_without_gap(bench: Bench) -> None:
    """Look at the numbers (`seq`) of all events, also after a session is reopened. Expect 1, 2, 3, … without
    a gap."""
    seqs = [event.seq for event in EVENTS.on(bench)]
    expect(seqs == list(range(1, len(seqs) + 1)), f"the numbers 1 to {len(seqs)} as seq of the events", seqs)

    one = bench.talk(*turns(3, 50))
    one.peer.call("daemon/ping", {}, shapes.Nothing)
    last = one.peer.events(one.id)[-1].seq
    again = one.peer.call("session/start", {"session_id": one.id}, shapes.Started)
    expect(again.seq == last, f"seq {last} in the result of session/start", again.seq)
    one.peer.result(one.ask("session/close"), shapes.Nothing)
    at = one.peer.now
    opened = one.peer.call("session/start", {"session_id": one.id}, shapes.Started)
    one.append(user("?"))
    one.peer.event(one.id, "usage_update", at)
    first = one.peer.events(one.id, at)[0].seq
    expect(
        (opened.seq, first) == (0, 1),
        "seq 0 in the result of session/start for a reopened session, and seq 1 in its first event",
        (opened.seq, first),
    )


@check(
    "usage-follows-an-append",
    law="Notifications: usage_update",
    says="The answer to an append is followed by a `usage_update`. The events of every other request "
    "come before its answer.",
    mend="Send a compaction's events before its answer, and an append's `usage_update` after its answer.",
)
def usage_follows(bench: Bench) -> None:
    """Compare the order of answers and events of an append and a compaction. Expect the append's answer
    before its `usage_update`, and the compaction's events before its answer."""
    talk = bench.talk(*turns(6, 200))
    peer = talk.peer
    append = talk.ask("session/append", messages=[user("?")])
    answer = peer.answer(append)
    update = peer.event(talk.id, "usage_update", answer.at)
    expect(update.at > answer.at, "usage_update after the answer to session/append", update.at - answer.at)

    before = peer.now
    compact = talk.ask("session/compact", keep_recent=KEEP)
    answer = peer.answer(compact)
    types = [event.type for event in peer.events(talk.id, before) if event.at < answer.at]
    told = [one for one in types if one != "compaction_progress"]
    wanted = ["compaction_start", "compaction_end", "usage_update"]
    expect(told == wanted, f"{', '.join(wanted)} before the answer", told)


@check(
    "the-hook",
    law="Methods: session/compacting",
    says="A client that announced `compaction_hook` receives the plan before a compaction and may cancel it.",
    mend="Send `session/compacting` after the compaction is planned; compact without the client's answer "
    "if it does not come in time.",
)
def hook(bench: Bench) -> None:
    """Answer `session/compacting` twice: cancel the first compaction, then allow the second. Expect the
    request both times, but only one compaction."""
    talk = bench.talk(*turns(6, 200), client={"name": "conformance", "compaction_hook": True})
    before = talk.context()
    at = talk.peer.now
    compact = talk.ask("session/compact", keep_recent=KEEP)
    asked = talk.peer.wait_request("session/compacting", at)
    talk.peer.reply(asked, {"cancel": True})

    done = talk.peer.result(compact, shapes.Compaction)
    expect(
        not done.compacted and bool(done.reason),
        "compacted: false with a reason, after the client refused",
        done,
    )
    expect(talk.context() == before, "the view unchanged", talk.context().tokens)
    at = talk.peer.now
    compact = talk.ask("session/compact", keep_recent=KEEP)
    talk.peer.reply(talk.peer.wait_request("session/compacting", at), None)
    expect(
        talk.peer.result(compact, shapes.Compaction).compacted,
        "a compaction, after the client allowed it",
        "none",
    )


@check(
    "the-summarize-phase-is-shown",
    law="Transport: progress",
    says="If a request has a `workDoneToken`, `$/progress` reports that a model is writing the summary "
    "while the model writes it.",
    mend="Send `$/progress` at the beginning of each phase.",
)
def summarize_is_shown(bench: Bench) -> None:
    """Start a compaction whose model does not answer yet. Expect progress that names the phase."""
    talk = bench.talk(*turns(6, 200))
    bench.model.hold()
    asked = talk.ask(
        "session/compact", keep_recent=KEEP, strategy="summarize", model=MODEL, workDoneToken=talk.id
    )

    def is_it(got: ReceivedMessage) -> bool:
        if got.method != "$/progress":
            return False
        told = read(got.params, shapes.Progress)
        return (told.token, told.value.message) == (talk.id, "summarize")

    talk.peer.wait(is_it, "$/progress with the phase `summarize`")
    bench.model.release()
    talk.peer.result(asked, shapes.Compaction)


@check(
    "no-other-strategy-than-the-one-asked-for",
    law="Errors: 1007",
    says="If no model is configured, `session/compact` with `strategy: summarize` answers error 1007 "
    "(NoProvider) and changes nothing.",
    mend="Fall back to another strategy only if the request has `strategy: auto`.",
)
def no_other_strategy(bench: Bench) -> None:
    """Ask for `summarize` in a session without a model. Expect error 1007 (no provider) and no change."""
    talk = bench.talk(*turns(6, 200))
    before = talk.context()
    fault = talk.refusal("session/compact", keep_recent=KEEP, strategy="summarize")
    expect(fault.code == 1007, "error 1007", f"{fault.code}: {fault.message}")
    expect(talk.context() == before, "the view unchanged", talk.context().tokens)


@check(
    "changes-are-told",
    law="Notifications: session_changed",
    says="If a pin, the title, a setting or the tools of a session change, `session_changed` is sent.",
    mend="Send `session_changed` for each change that appends no message.",
)
def changes_are_told(bench: Bench) -> None:
    """Change a pin, the title, a setting and the tools. Expect a `session_changed` event for each."""
    talk = bench.talk(*turns(2, 40))
    at = talk.peer.now
    tool = {"name": "read", "input_schema": {"type": "object"}}
    talk.peer.result(talk.ask("session/pin", entry_ids=["e1"]), shapes.Nothing)
    for given in ({"title": "A title"}, {"compaction": {"keep_messages": 3}}, {"tools": [tool]}):
        talk.peer.result(talk.ask("session/configure", **given), shapes.Nothing)
    talk.state()

    told = [
        read(talk.peer.received[event.at].params, shapes.Changed).what
        for event in talk.peer.events(talk.id, at)
        if event.type == "session_changed"
    ]
    wanted = ["pin", "title", "settings", "tools"]
    expect(told == wanted, ", ".join(wanted), ", ".join(told) or "no session_changed")


CHECKS = (
    state_does_not_wait,
    reading_goes_on,
    second_change,
    cancelled,
    empty_summary,
    start_has_end,
    end_has_start,
    seq_without_gap,
    usage_follows,
    hook,
    summarize_is_shown,
    no_other_strategy,
    changes_are_told,
)
"""The checks in the order in which they run."""
