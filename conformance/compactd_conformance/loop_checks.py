"""Checks of an agent's turns.

The client can run the loop (`turn/begin`, `turn/error`), or the program runs it (`agent/prompt`). In the
second case, the suite itself is the model server.
"""

from __future__ import annotations

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, check, expect
from compactd_conformance.event_checks import MODEL, fence
from compactd_conformance.peer import Peer
from compactd_conformance.talk import Talk, turns, user

TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"
"""The error text of Anthropic's Messages API for a prompt that is too long (400, seen 2026-03)."""


@check(
    "turn-begin-compacts-when-due",
    law="Methods: turn/begin",
    says="If a compaction is due, `turn/begin` compacts the session, and the context is then below the "
    "threshold.",
    mend="Compare the context's size with the threshold in `turn/begin`, and compact there.",
)
def turn_begin(bench: Bench) -> None:
    """Begin a turn in a small and in a full session. Expect a compaction only in the full one."""
    small = bench.talk(*turns(4, 100), compaction={"context_window": 8000})
    full = bench.talk(*turns(20, 200), compaction={"context_window": 8000})

    not_due = small.peer.result(small.ask("turn/begin"), shapes.Begun).compaction
    due = full.peer.result(full.ask("turn/begin"), shapes.Begun).compaction
    expect(not_due is None, "no compaction of a context that fits", not_due)
    expect(due is not None and due.compacted, "a compaction when the context is above the threshold", due)
    expect(full.context().tokens < 6400, "a context below the threshold of 6,400", full.context().tokens)


@check(
    "recovery-ends",
    law="Law 3",
    says="A turn makes a bounded number of model requests, whatever the provider answers. Each time "
    "`turn/error` answers `retry: true` to an overflow, the context has fewer tokens than before. The "
    "fourth overflow gets `retry: false`.",
    mend="Count the overflows since the last `turn/end`.",
)
def recovery_ends(bench: Bench) -> None:
    """Report overflows until the program gives up. Expect smaller contexts, and `retry: false` after the
    fourth."""
    talk = bench.talk(*turns(30, 300), compaction={"context_window": 200_000})
    sizes = [talk.context().tokens]
    while (failed := _rejected(talk)).retry:
        expect(failed.overflow, "overflow: true", failed)
        sizes.append(talk.context().tokens)
        expect(sizes[-1] < sizes[-2], "strictly fewer tokens at each retry", sizes)
        expect(len(sizes) <= 4, "retry: false at the fourth overflow at the latest", failed)
    expect(len(sizes) > 1, "at least one retry with fewer tokens", sizes)


def _rejected(talk: Talk) -> shapes.Failed:
    error = {"status": 400, "message": TOO_LONG, "provider": "anthropic"}
    return talk.peer.result(talk.ask("turn/error", error=error), shapes.Failed)


def _types(talk: Talk, after: int, *wanted: str) -> tuple[str, ...]:
    """Return the types of the session's events after the position `after`, in order. Types that are not in
    `wanted` are left out.
    """
    return tuple(event.type for event in talk.peer.events(talk.id, after) if event.type in wanted)


@check(
    "a-prompt-ends-once",
    law="Notifications: the loop",
    says="`agent/prompt` is answered as soon as the prompt is stored. Then the events agent_start, "
    "turn_start, message_start, message_end, turn_end and exactly one agent_end arrive, and the model's "
    "answer is in the history.",
    mend="Send each event where its step happens, and agent_end in a single place in the code.",
)
def prompt_ends(bench: Bench) -> None:
    """Send a prompt. Expect the events of a turn in order, with one `agent_end`, and the answer in the
    history."""
    bench.model.release("It is done.")
    talk = bench.talk(model=MODEL)
    at = talk.peer.now
    talk.peer.result(talk.ask("agent/prompt", text="Do it."), shapes.Queued)
    talk.peer.event(talk.id, "agent_end", at)
    fence(talk.peer)

    wanted = ("agent_start", "turn_start", "message_start", "message_end", "turn_end", "agent_end")
    told = _types(talk, at, *wanted)
    expect(told == wanted, f"{', '.join(wanted)}, each once", told)
    expect(
        talk.history_texts() == ("Do it.", "It is done."),
        "the prompt and the model's answer in the history",
        talk.history_texts(),
    )
    expect(talk.state().status == "idle", "the status idle", talk.state().status)


@check(
    "an-abort-ends-the-prompt",
    law="Methods: agent/abort",
    says="`agent/abort` stops the model's answer. The events agent_abort and then exactly one agent_end "
    "are sent. The prompt stays in the history.",
    mend="Close the connection to the model, then send agent_abort and agent_end.",
)
def abort(bench: Bench) -> None:
    """Abort an answer. Expect `agent_abort`, then one `agent_end`, and the prompt in the history."""
    bench.model.hold()
    talk = bench.talk(user("Hello"), model=MODEL)
    at = talk.peer.now
    talk.peer.result(talk.ask("agent/prompt", text="Do it."), shapes.Queued)
    talk.peer.event(talk.id, "turn_start", at)
    talk.peer.result(talk.ask("agent/abort"), shapes.Nothing)
    talk.peer.event(talk.id, "agent_end", at)
    fence(talk.peer)

    told = _types(talk, at, "agent_start", "agent_abort", "agent_end", "error")
    expect(told == ("agent_start", "agent_abort", "agent_end"), "one agent_abort, then one agent_end", told)
    expect("Do it." in talk.history_texts(), "the prompt in the history", talk.history_texts())


@check(
    "every-turn-start-has-its-end",
    law="Notifications: the loop",
    says="Each `turn_start` is followed by the `turn_end` of the same turn, and that comes before "
    "`agent_end`. This also holds if the turn is aborted.",
    mend="Send `turn_end` in a single place in the code that a turn always reaches, however it ended.",
)
def turn_has_end(bench: Bench) -> None:
    """Abort a turn. Expect its `turn_end` before `agent_end`."""
    talk, at, _ = _send_prompt(bench)
    talk.peer.result(talk.ask("agent/abort"), shapes.Nothing)
    talk.peer.event(talk.id, "agent_end", at)

    wanted = ("turn_start", "turn_end", "agent_end")
    told = _types(talk, at, *wanted)
    expect(told == wanted, ", ".join(wanted), told)


def _send_prompt(bench: Bench, on: Peer | None = None) -> tuple[Talk, int, shapes.Queued]:
    """Send a prompt that the model does not answer yet. Return (the session, the position of the last message
    before the prompt's events, the result of `agent/prompt`).
    """
    bench.model.hold()
    talk = bench.talk(model=MODEL, on=on)
    at = talk.peer.now
    queued = talk.peer.result(talk.ask("agent/prompt", text="first"), shapes.Queued)
    talk.peer.event(talk.id, "turn_start", at)
    return talk, at, queued


@check(
    "no-answer-for-a-client-that-is-gone",
    law="Transport: a client that vanished",
    says="The program exits when its output is closed, even if the model is still answering a prompt.",
    mend="When a write to stdout fails because it is closed, abort running prompts and exit.",
)
def vanished(bench: Bench) -> None:
    """Close both pipes while the model is answering. Expect the program to exit."""
    talk, _, _ = _send_prompt(bench, bench.fresh())
    talk.peer.vanish()
    bench.model.release()


@check(
    "waiting-prompts-can-be-dropped",
    law="Methods: prompt/drop",
    says="`agent/state` lists the waiting prompts. `prompt/drop` removes one of them. The model is then "
    "never asked this prompt.",
    mend="Give each waiting prompt an id; check for dropped prompts before starting the next one.",
)
def waiting_prompts(bench: Bench) -> None:
    """Send a second prompt while the first is running, and drop it. Expect that the second prompt was listed
    as waiting, and that the model never answers it."""
    talk, at, first = _send_prompt(bench)
    second = talk.peer.result(talk.ask("agent/prompt", text="second"), shapes.Queued)
    listed = tuple(prompt.prompt_id for prompt in talk.state().prompts)
    expect(listed == (second.turn_id,), f"{second.turn_id}, which waits after {first.turn_id}", listed)
    talk.peer.result(talk.ask("agent/abort"), shapes.Nothing)
    talk.peer.result(talk.ask("prompt/drop", prompt_id=second.turn_id), shapes.Nothing)
    talk.peer.event(talk.id, "agent_end", at)
    bench.model.release("To the third.")
    before = talk.peer.now
    talk.peer.result(talk.ask("agent/prompt", text="third"), shapes.Queued)
    talk.peer.event(talk.id, "agent_end", before)
    expect(
        talk.history_texts() == ("first", "third", "To the third."),
        "an answer only to the third prompt",
        talk.history_texts(),
    )


CHECKS = (turn_begin, recovery_ends, prompt_ends, abort, turn_has_end, vanished, waiting_prompts)
"""The checks in the order in which they run."""
