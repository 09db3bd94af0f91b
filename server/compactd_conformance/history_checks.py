"""Checks that everything said can be recovered: undo, search, expand, branches, restarts, copies (laws 4 and
9).
"""

from __future__ import annotations

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, check, expect
from compactd_conformance.frames import read
from compactd_conformance.talk import (
    KEEP,
    Said,
    Talk,
    assistant,
    contents,
    resumed,
    said,
    turns,
    user,
    worked,
)


@check(
    "a-restart-changes-nothing",
    law="Law 9",
    says="Closing and opening a session, in the same process and in another, gives the same view, "
    "counts and epoch.",
    mend="Keep no state that is not in the journal; rebuild the view from the journal alone.",
)
def restart(bench: Bench) -> None:
    """Compare view, usage and history before and after reopening."""
    home = bench.home()
    peer = bench.fresh(home)
    talk = bench.talk(*worked(6), on=peer, session_id="replayed", system_prompt="Be brief.")
    talk.compact()
    talk.append(*worked(2), usage={"input_tokens": 900, "output_tokens": 20})
    before = (talk.context(), talk.state().token_usage, talk.history())
    talk.peer.result(talk.ask("session/close"), shapes.Nothing)
    closed, _ = resumed(peer, talk)
    reopened = (closed.context(), closed.state().token_usage, closed.history())
    peer.stop()
    again, started = resumed(bench.fresh(home), talk)

    expect(reopened == before, "the same after close and start", "another view, size or history")
    expect(started.resumed, "resumed: true", started)
    after = (again.context(), again.state().token_usage, again.history())
    expect(after == before, "the same in another process", "another view, size or history")


@check(
    "undo-keeps-later-messages",
    law="Law 4; time travel",
    says="Undo restores what a compaction removed, redo applies the compaction again, and messages "
    "that came after it are kept by both.",
    mend="Record an undo as a marker that names the compaction; delete and rewind nothing.",
)
def undo(bench: Bench) -> None:
    """Undo and redo a compaction that is followed by messages."""
    messages = turns(6, 200)
    talk = bench.talk(*messages)
    talk.compacted(keep_recent=KEEP)
    compacted = talk.texts()
    later = ("What came later.", "An answer to it.")
    talk.append(user(later[0]), assistant(later[1]))

    undone = talk.rewind("session/undo")
    seen = talk.texts()
    expect(seen == (*contents(messages), *later), "all messages, the later ones too, after undo", seen)
    expect(undone.message_count == len(seen), f"message_count {len(seen)}", undone.message_count)
    talk.rewind("session/redo")
    seen = talk.texts()
    expect(seen == (*compacted, *later), "the compacted view and the later messages after redo", seen)


@check(
    "undo-of-nothing",
    law="Errors: 1011",
    says="If there is nothing to undo or redo, the answer is 1011. A new compaction clears redo.",
    mend="Keep a stack of what is in force, and one of what was undone.",
)
def undo_nothing(bench: Bench) -> None:
    """Undo and redo with nothing to undo or redo."""
    talk = bench.talk(*turns(6, 200))
    codes = [talk.refusal(method).code for method in ("session/undo", "session/redo")]
    talk.compacted(keep_recent=KEEP)
    talk.rewind("session/undo")
    talk.compacted(keep_recent=KEEP)
    codes.append(talk.refusal("session/redo").code)
    expect(codes == [1011] * 3, "1011 three times", codes)


@check(
    "search-finds-what-was-compacted",
    law="Law 4",
    says="Search ignores case, finds what a compaction removed from the context, and says that it is "
    "no longer in the context.",
    mend="Search the whole history, not the view.",
)
def search(bench: Bench) -> None:
    """Search a message before and after it is compacted away."""
    talk = bench.talk(user("The needle is under the Größte haystack."), *turns(6, 200))
    before = talk.search("NEEDLE is")
    talk.compacted(keep_recent=KEEP)

    after = talk.search("needle IS under the GRÖSSTE") or talk.search("needle IS under the größte")
    expect([hit.in_context for hit in before] == [True], "one hit, in the context, before", before)
    gone = [hit for hit in after if not hit.in_context]
    expect(len(gone) == 1, "one hit, no longer in the context, after", after)
    expect("needle" in gone[0].snippet, "a snippet with the hit", gone[0].snippet)


@check(
    "originals-can-be-expanded",
    law="Law 4",
    says="Everything that a compaction removed can be read word for word with `session/expand` and "
    "`session/history`.",
    mend="Delete nothing; a compaction only changes the view.",
)
def expand(bench: Bench) -> None:
    """Expand a compaction and compare the messages."""
    messages = turns(6, 200)
    talk = bench.talk(*messages)
    done = talk.compacted(keep_recent=KEEP)

    back = talk.peer.result(
        talk.ask("session/expand", compaction_id=done.compaction_id), shapes.Originals
    ).entries
    texts = tuple(said(read(one.message, Said)) for one in back)
    whole = contents(messages)
    expect(len(back) >= done.messages_removed, f"{done.messages_removed} originals", len(back))
    expect(set(texts) <= set(whole), "the messages as they were", texts)
    expect(talk.written() == whole, "all messages in the history", talk.written())


@check(
    "a-branch-deletes-nothing",
    law="Law 4; time travel",
    says="After `session/branch`, the next message follows the named entry, and the other branch is "
    "still in the history.",
    mend="Set the parent of the next entry; delete nothing.",
)
def branch(bench: Bench) -> None:
    """Branch at an earlier message, and compare view and history."""
    talk = bench.talk()
    ids = talk.append(*(user(str(n)) for n in range(4))).entry_ids
    talk.peer.result(talk.ask("session/branch", entry_id=ids[1]), shapes.Nothing)
    talk.append(user("other"))

    expect(talk.texts() == ("0", "1", "other"), "0, 1, other in the view", talk.texts())
    expect(set(talk.written()) == {"0", "1", "2", "3", "other"}, "all five in the history", talk.written())


@check(
    "a-message-id-counts-once",
    law="Methods: session/append",
    says="A message with a known `id` is not added again. With the same content, the answer has its "
    "old entry id and lists it in `duplicates`; with other content, it is -32602.",
    mend="Store the ids of messages: a client that did not receive an answer sends the message again.",
)
def message_ids(bench: Bench) -> None:
    """Append a message twice, with the same and with other content."""
    talk = bench.talk()
    first = talk.append(user("Hello", id="m1"))
    again = talk.append(user("Hello", id="m1"), user("More"))
    fault = talk.refusal("session/append", messages=[user("Other", id="m1")])

    expect(again.entry_ids[:1] == first.entry_ids, f"the old entry id {first.entry_ids}", again.entry_ids)
    expect(again.duplicates == ("m1",), "m1 in duplicates", again.duplicates)
    expect(fault.code == -32602, "-32602 for other content", f"{fault.code}: {fault.message}")
    expect(talk.written() == ("Hello", "More"), "each once in the history", talk.written())


@check(
    "a-redacted-secret-is-gone",
    law="Methods: session/redact",
    says="Redacted content is in no view, no history, no search result and no file of the data folder.",
    mend="Rewrite the journal before answering; rebuild what is derived from it.",
)
def redacted(bench: Bench) -> None:
    """Redact a message, and look for its content in answers and files."""
    home, secret = bench.home(), "hunter2-correct-horse"
    talk = bench.talk(user("Hello"), user(f"The key is {secret}."), assistant("Noted."), on=bench.fresh(home))
    entry = talk.history()[1].entry_id
    talk.peer.result(talk.ask("session/redact", entry_ids=[entry]), shapes.Nothing)

    seen = (*talk.texts(), *talk.written(), *(hit.snippet for hit in talk.search("hunter2")))
    told = [text for text in seen if secret in text]
    files = [path.name for path in home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    expect(not told, "the secret in no view, history or search", told)
    expect(not files, "the secret in no file", files)
    expect(len(talk.written()) == 3, "the message still there, without its content", talk.written())


@check(
    "export-and-import",
    law="Methods: session/export, session/import",
    says="A session that is exported as `compactd` and imported elsewhere has the same history and view.",
    mend="Export everything in the journal, and import it unchanged.",
)
def export(bench: Bench) -> None:
    """Export a session and import it in another process."""
    talk = bench.talk(*worked(6), system_prompt="Be brief.", session_id="carried")
    talk.compacted(keep_recent=KEEP)
    out = talk.peer.result(talk.ask("session/export", format="compactd"), shapes.Exported)
    other = bench.fresh()
    into = other.call("session/import", {"content": out.content, "format": "compactd"}, shapes.Imported)
    there = Talk.start(other, {"session_id": into.session_id})

    expect(there.written() == talk.written(), "the same history", there.written())
    expect(there.texts() == talk.texts(), "the same view", there.texts())


@check(
    "an-undo-can-be-forced",
    law="Methods: session/undo",
    says="If the whole history exceeds the window, undo answers 1008. With `force`, it is done.",
    mend="Check the window only without `force`: the next `turn/begin` compacts.",
)
def forced_undo(bench: Bench) -> None:
    """Undo a compaction of a history that exceeds the window."""
    talk = bench.talk(*turns(10, 400), compaction={"context_window": 4000})
    talk.peer.result(talk.ask("turn/begin"), shapes.Begun)
    fault = talk.refusal("session/undo")
    expect(fault.code == 1008, "1008", f"{fault.code}: {fault.message}")
    undone = talk.peer.result(talk.ask("session/undo", force=True), shapes.Rewound)
    expect(undone.compaction_id == "c1", "the compaction undone", undone)


CHECKS = (restart, undo, undo_nothing, search, expand, branch, message_ids, redacted, export, forced_undo)
"""The checks in the order in which they run."""
