"""Checks that acknowledged data survives kills, damaged files, and other processes on the same files (laws 4
and 5).
"""

from __future__ import annotations

from pathlib import Path

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, NotTried, check, expect
from compactd_conformance.event_checks import held_compaction
from compactd_conformance.frames import read
from compactd_conformance.peer import Peer
from compactd_conformance.talk import Message, Talk, contents, resume, text, turns, user

TRIES = 100
"""The most attempts to open a session whose owner was killed. The lock may be free only after several
attempts: if the command under test is a wrapper, the program that it started may live a moment longer.
"""


def _take_over(peer: Peer, talk: Talk) -> tuple[Talk, shapes.Started]:
    """Resume a session whose owner was just killed. Repeat this until the session can be written, at most
    `TRIES` times. Return the last result of `resume`.
    """
    again, started = resume(peer, talk)
    for _ in range(TRIES):
        if not started.read_only:
            break
        again, started = resume(peer, talk)
    return again, started


@check(
    "acknowledged-is-durable",
    law="Law 4",
    says="If the program was killed (SIGKILL), it still has every message whose append it had answered, "
    "with both values of `durability`.",
    mend="Answer an append only after its bytes were written to the operating system; for `disk`, only "
    "after they were synced to disk.",
)
def acknowledged(bench: Bench) -> None:
    """Append messages and kill the program, with both values of `durability`. Expect every acknowledged
    message in the reopened session."""
    for durability in ("disk", "os"):
        home = bench.home()
        peer = bench.fresh(home)
        talk = bench.talk(on=peer, session_id="kept", durability=durability)
        messages = turns(4, 50)
        for message in messages:
            talk.append(message)
        peer.kill()

        again, started = _take_over(bench.fresh(home), talk)
        expect(started.resumed, f"a resumed session ({durability})", started)
        seen = again.history_texts()
        expect(
            seen == contents(messages), f"all {len(messages)} messages ({durability})", f"{len(seen)}: {seen}"
        )


@check(
    "killed-in-a-compaction",
    law='Law 4; never again: a crash that leaves "running" behind',
    says="If the program was killed during a compaction, the session opens idle, with all messages and "
    "with the view that it had before that compaction.",
    mend="Write a compaction to the journal as one record; if a compaction started and did not end, treat "
    "it as failed.",
)
def killed_in_compaction(bench: Bench) -> None:
    """Kill the program while a compaction runs. Expect the view from before the compaction, and the whole
    history."""
    home = bench.home()
    held = held_compaction(bench, home)
    before, written = held.talk.context(), held.talk.history_texts()
    held.peer.kill()

    again, _ = _take_over(bench.fresh(home), held.talk)
    state = again.state()
    after = again.context()
    expect((state.status, state.compaction.running) == ("idle", False), "that the session is idle", state)
    same = (after.messages, after.tokens) == (before.messages, before.tokens)
    expect(same, "the view from before the compaction", f"{before.tokens} → {after.tokens} tokens")
    expect(again.history_texts() == written, "every message", again.history_texts())
    expect(again.compact().compacted, "that the session can be compacted again", "none")


def _file_with(home: Path, mark: bytes) -> Path:
    """Return the file below `home` that contains `mark`, a text that a check appended to a session. If there
    are several, return the largest, because the others may be derived from it. Raise `NotTried` if there is
    none.
    """
    found = [path for path in home.rglob("*") if path.is_file() and mark in path.read_bytes()]
    if not found:
        raise NotTried("no file below COMPACTD_HOME contains the appended bytes, so there is nothing to cut")
    return max(found, key=lambda path: path.stat().st_size)


@check(
    "torn-records-are-told",
    law="Law 5",
    says="If a journal was cut off at any byte, its session opens with the appended messages before the cut. "
    "An incomplete last record is reported and never used.",
    mend="Verify each record with a checksum or length; report records that were left out in `warnings[]` "
    "of `session/start`.",
)
def torn(bench: Bench) -> None:
    """Cut the journals of four sessions inside their last record, and open them. Expect all messages but
    the incomplete one, and a warning about it."""
    home = bench.home()
    peer = bench.fresh(home)
    cuts = {"a": 0.1, "b": 0.5, "c": 0.9, "d": 0.98}
    kept: dict[str, tuple[Message, ...]] = {}
    for name in cuts:
        talk = bench.talk(on=peer, session_id=f"torn-{name}")
        kept[name] = (*turns(2, 40), user(f"mark-{name} {text(200)} end"))
        for message in kept[name]:
            talk.append(message)
    peer.stop()
    for name, share in cuts.items():
        mark = f"mark-{name} ".encode()
        path = _file_with(home, mark)
        content = path.read_bytes()
        start = content.rindex(mark)
        path.write_bytes(content[: start + round(800 * share)])

    again = bench.fresh(home)
    for name, share in cuts.items():
        talk, started = resume(again, Talk(again, f"torn-{name}"))
        seen, whole = talk.history_texts(), contents(kept[name])
        expect(
            seen == whole[: len(seen)],
            f"the appended messages before the cut, without gaps (file cut at {share:.0%})",
            seen,
        )
        expect(
            len(seen) == len(whole) - 1,
            "all messages except the one whose record was cut",
            f"{len(seen)} of {len(whole)}",
        )
        expect(bool(started.warnings), "a warning about the incomplete record", started.warnings)


@check(
    "damage-in-the-middle",
    law="Law 5",
    says="If a journal is damaged in the middle, opening its session answers error 1003 (SessionCorrupt). "
    "The error's `data` says what can be recovered, and the file is not changed.",
    mend="Treat a bad record as damage if complete records follow it, and as an incomplete end if none do.",
)
def damaged(bench: Bench) -> None:
    """Change a byte in the middle of a journal, and open it. Expect error 1003 (session corrupt), and an
    unchanged file."""
    home = bench.home()
    peer = bench.fresh(home)
    talk = bench.talk(on=peer, session_id="damaged")
    for message in (user("first"), user(f"damage-here {text(50)}"), *turns(2, 40)):
        talk.append(message)
    peer.stop()
    path = _file_with(home, b"damage-here")
    broken = path.read_bytes().replace(b"damage-here", b"damage-Here", 1)
    path.write_bytes(broken)

    fault = bench.fresh(home).refusal("session/start", {"session_id": "damaged"})
    expect(fault.code == 1003, "error 1003", f"{fault.code}: {fault.message}")
    expect(
        len(bytes(fault.data)) > len(b"null"),
        "what can be recovered, in the error's data",
        bytes(fault.data),
    )
    expect(path.read_bytes() == broken, "the journal file unchanged", "another")


@check(
    "one-writer",
    law="Values: read_only; errors: 1004",
    says="A session that another process has open can be started. It is then `read_only`: reading works, "
    "and writes answer error 1004 (SessionLocked). After the other process has ended, the next start can "
    "write.",
    mend="Hold a lock on the session's files while the session is open for writing.",
)
def one_writer(bench: Bench) -> None:
    """Open one session in two processes. Expect that the second process can only read it (`read_only`) until
    the first process is killed."""
    home = bench.home()
    owner = bench.fresh(home)
    talk = bench.talk(user("Hello"), on=owner, session_id="shared")
    other, started = resume(bench.fresh(home), talk)

    expect(started.read_only, "read_only: true", started)
    expect(other.texts() == ("Hello",), "the message that the owner appended", other.texts())
    fault = other.refusal("session/append", messages=[user("Mine")])
    expect(fault.code == 1004, "error 1004", f"{fault.code}: {fault.message}")
    owner.kill()
    _, taken = _take_over(other.peer, talk)
    expect(not taken.read_only, "read_only: false after the owner's end", taken)


ODD_IDS = ("../../../odd-id", "..", "a/b/../../../../odd-id", "odd\\..\\..\\id", "C:odd-id", "~", "字" * 256)


@check(
    "an-id-is-no-path",
    law="Never again: delete with an unchecked id as a path",
    says="A session id of 1 to 256 code points is a name, never a path: nothing outside the data "
    "folder is written or deleted. Ids that are empty, longer or contain control characters "
    "answer -32602.",
    mend="Compute file names from a hash of the id.",
)
def id_is_no_path(bench: Bench) -> None:
    """Use session ids that look like paths, and check that no file outside the data folder changes."""
    place = bench.home().parent
    home = place / "a" / "b" / "home"
    home.parent.mkdir(parents=True)
    peer = bench.fresh(home)
    for name in ("victim", "victim.jsonl", "victim.json"):
        (place / "a" / name).write_text("mine")
    before = _outside(place, home)
    for id in (*ODD_IDS, str(place / "odd-id")):
        talk = bench.talk(on=peer, session_id=id)
        expect(talk.id == id, f"the session {id!r}", talk.id)
        talk.append(user(f"of {id}"))
        changed = _outside(place, home) ^ before
        expect(not changed, f"nothing outside the data folder written by starting {id!r}", changed)
    rows = {row.session_id for row in peer.call("session/list", {}, shapes.Rows).sessions}
    expect(set(ODD_IDS) <= rows, "all these sessions in session/list", rows)
    for id in ("../../../victim", "../../victim", "../victim", str(place / "a" / "victim"), *ODD_IDS):
        peer.answer(peer.ask("session/delete", {"session_id": id}))
        changed = _outside(place, home) ^ before
        expect(not changed, f"nothing outside the data folder deleted by deleting {id!r}", changed)
    for id in ("", "x" * 257, "a\u0000b", "a\nb"):
        fault = peer.refusal("session/start", {"session_id": id})
        expect(fault.code == -32602, f"error -32602 for the id {id!r:.20}", f"{fault.code}: {fault.message}")


def _outside(place: Path, home: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_file() and home not in path.parents}


@check(
    "looking-takes-no-lock",
    law="LSP: workspace/executeCommand",
    says="`compactd.state` takes no lock, so another process can still write to the session.",
    mend="To answer `compactd.state`, open the session for reading only, without the lock.",
)
def looking(bench: Bench) -> None:
    """Ask for the state of a closed session. Expect that another process can then open the session for
    writing."""
    home = bench.home()
    agent, editor = bench.fresh(home), bench.fresh(home)
    talk = bench.talk(user("Hello"), on=agent, session_id="looked-at")
    talk.peer.result(talk.ask("session/close"), shapes.Nothing)
    state = editor.call(
        "workspace/executeCommand", {"command": "compactd.state", "arguments": []}, shapes.State
    )
    _, again = resume(agent, talk)
    expect(state.session_id == talk.id, "the state of the newest session", state.session_id)
    expect(not again.read_only, "read_only: false for the next process that opens the session", again)


@check(
    "a-reader-is-told",
    law="Values: read_only; notifications",
    says="A process that reads a session gets events for appended messages, compactions and the session's "
    "deletion. For this process, the session's status is `unknown`.",
    mend="Read new records of the journal as the other process writes them, and send the event that "
    "belongs to each.",
)
def reader_is_told(bench: Bench) -> None:
    """Change a session in one process, while another process has it open read-only. Expect that the second
    process sends events for the changes."""
    home = bench.home()
    talk = bench.talk(*turns(6, 200), on=bench.fresh(home), session_id="shared")
    other, _ = resume(bench.fresh(home), talk)
    at = other.peer.now
    status = other.state().status
    expect(status == "unknown", "the status `unknown` in the reading process", status)
    talk.append(user("And one more thing."))
    other.peer.event(talk.id, "message_appended", at)
    talk.compact_or_fail()
    other.peer.event(talk.id, "compaction_end", at)
    talk.peer.result(talk.ask("session/delete"), shapes.Nothing)
    closed = other.peer.event(talk.id, "session_closed", at)
    reason = read(other.peer.received[closed.at].params, shapes.Closed).reason
    expect(reason == "deleted", "the event session_closed with the reason deleted", reason)
    fault = other.refusal("session/context")
    expect(fault.code == 1001, "error 1001", f"{fault.code}: {fault.message}")


CHECKS = (
    acknowledged,
    killed_in_compaction,
    torn,
    damaged,
    one_writer,
    id_is_no_path,
    looking,
    reader_is_told,
)
"""The checks in the order in which they run."""
