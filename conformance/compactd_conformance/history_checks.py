"""Checks that everything said can be recovered: undo, search, expand, branches, restarts, copies (laws 4 and
9).
"""

from __future__ import annotations

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, check, expect
from compactd_conformance.frames import read
from compactd_conformance.talk import (
    KEEP,
    NeutralMessage,
    Talk,
    agent_turns,
    assistant,
    contents,
    neutral_text,
    resume,
    turns,
    user,
)


@check(
    "a-restart-changes-nothing",
    law="Law 9",
    says="A session that is closed and opened again, in the same process or in another one, has the same "
    "view, token counts, history and epoch.",
    mend="Write all state of a session to its journal; when the session is opened, rebuild the view from "
    "the journal only.",
)
def restart(bench: Bench) -> None:
    """Close and reopen a session, in the same process and in another. Expect the same view, usage and
    history."""
    home = bench.home()
    peer = bench.fresh(home)
    talk = bench.talk(*agent_turns(6), on=peer, session_id="replayed", system_prompt="Be brief.")
    talk.compact()
    talk.append(*agent_turns(2), usage={"input_tokens": 900, "output_tokens": 20})
    before = (talk.context(), talk.state().token_usage, talk.history())
    talk.peer.result(talk.ask("session/close"), shapes.Nothing)
    closed, _ = resume(peer, talk)
    reopened = (closed.context(), closed.state().token_usage, closed.history())
    peer.stop()
    again, started = resume(bench.fresh(home), talk)

    expect(
        reopened == before,
        "the same view, size and history after session/close and session/start",
        "another view, size or history",
    )
    expect(started.resumed, "resumed: true", started)
    after = (again.context(), again.state().token_usage, again.history())
    expect(
        after == before,
        "the same view, size and history in another process",
        "another view, size or history",
    )


@check(
    "undo-keeps-later-messages",
    law="Law 4; time travel",
    says="Undo puts the messages that a compaction removed back into the view, and redo applies the "
    "compaction again. Both keep the messages that were appended after the compaction.",
    mend="Store an undo as a new journal record that names the compaction; do not delete or shorten "
    "anything.",
)
def undo(bench: Bench) -> None:
    """Undo and redo a compaction after which messages were appended. Expect the original messages after the
    undo, the summary after the redo, and the appended messages after both."""
    messages = turns(6, 200)
    talk = bench.talk(*messages)
    talk.compact_or_fail(keep_recent=KEEP)
    compacted = talk.texts()
    later = ("What came later.", "An answer to it.")
    talk.append(user(later[0]), assistant(later[1]))

    undone = talk.rewind("session/undo")
    seen = talk.texts()
    expect(
        seen == (*contents(messages), *later),
        "all messages after undo, including those appended after the compaction",
        seen,
    )
    expect(undone.message_count == len(seen), f"message_count {len(seen)}", undone.message_count)
    talk.rewind("session/redo")
    seen = talk.texts()
    expect(
        seen == (*compacted, *later),
        "the compacted view after redo, with the messages appended after the compaction",
        seen,
    )


@check(
    "undo-of-nothing",
    law="Errors: 1011",
    says="If there is nothing to undo or redo, the answer is error 1011 (NothingToUndo). After a new "
    "compaction, there is nothing to redo.",
    mend="Keep one stack of the compactions that apply, and one of those that were undone; empty the "
    "second at a new compaction.",
)
def undo_nothing(bench: Bench) -> None:
    """Undo and redo when there is nothing to undo or redo. Expect error 1011 (nothing to undo)."""
    talk = bench.talk(*turns(6, 200))
    codes = [talk.refusal(method).code for method in ("session/undo", "session/redo")]
    talk.compact_or_fail(keep_recent=KEEP)
    talk.rewind("session/undo")
    talk.compact_or_fail(keep_recent=KEEP)
    codes.append(talk.refusal("session/redo").code)
    expect(codes == [1011] * 3, "error 1011 for each of the three requests", codes)


@check(
    "search-finds-what-was-compacted",
    law="Law 4",
    says="`session/search` ignores case, also finds messages that a compaction removed from the context, "
    "and says of each hit whether it is still in the context.",
    mend="Search all messages of the history, not only those in the view.",
)
def search(bench: Bench) -> None:
    """Search for a message before and after a compaction removes it from the context."""
    talk = bench.talk(user("The needle is under the Größte haystack."), *turns(6, 200))
    before = talk.search("NEEDLE is")
    talk.compact_or_fail(keep_recent=KEEP)

    after = talk.search("needle IS under the GRÖSSTE") or talk.search("needle IS under the größte")
    expect(
        [hit.in_context for hit in before] == [True],
        "one hit before the compaction, in the context",
        before,
    )
    gone = [hit for hit in after if not hit.in_context]
    expect(len(gone) == 1, "one hit after the compaction, not in the context", after)
    expect(
        "needle" in gone[0].snippet,
        "a snippet that contains the text that was searched for",
        gone[0].snippet,
    )


@check(
    "originals-can-be-expanded",
    law="Law 4",
    says="Everything that a compaction removed can be read word for word with `session/expand` and "
    "`session/history`.",
    mend="When you compact, change only the view, and delete no message.",
)
def expand(bench: Bench) -> None:
    """Expand a compaction. Expect exactly the messages that it removed."""
    messages = turns(6, 200)
    talk = bench.talk(*messages)
    done = talk.compact_or_fail(keep_recent=KEEP)

    back = talk.peer.result(
        talk.ask("session/expand", compaction_id=done.compaction_id), shapes.Originals
    ).entries
    texts = tuple(neutral_text(read(one.message, NeutralMessage)) for one in back)
    whole = contents(messages)
    expect(len(back) >= done.messages_removed, f"{done.messages_removed} originals", len(back))
    expect(set(texts) <= set(whole), "the removed messages, unchanged", texts)
    expect(talk.history_texts() == whole, "all messages in the history", talk.history_texts())


@check(
    "a-branch-deletes-nothing",
    law="Law 4; time travel",
    says="After `session/branch`, the next message follows the named entry, and the other branch is "
    "still in the history.",
    mend="Set the named entry as the parent of the next entry; do not delete the other branch.",
)
def branch(bench: Bench) -> None:
    """Branch at an earlier message, then append a new one. Expect the new message after the entry that was
    named, and the old branch still in the history."""
    talk = bench.talk()
    ids = talk.append(*(user(str(n)) for n in range(4))).entry_ids
    talk.peer.result(talk.ask("session/branch", entry_id=ids[1]), shapes.Nothing)
    talk.append(user("other"))

    expect(
        talk.texts() == ("0", "1", "other"),
        "messages 0 and 1 and the new message in the view",
        talk.texts(),
    )
    expect(
        set(talk.history_texts()) == {"0", "1", "2", "3", "other"},
        "all five messages in the history",
        talk.history_texts(),
    )


@check(
    "a-message-id-counts-once",
    law="Methods: session/append",
    says="A message whose `id` is already in the session is not added again. If its content is the same, "
    "the answer has the entry id of the first message and lists the message in `duplicates`. If the "
    "content differs, the answer is error -32602 (InvalidParams).",
    mend="Store the ids of messages, because a client that received no answer sends the message again.",
)
def message_ids(bench: Bench) -> None:
    """Append a message with a known `id` twice: with the same content, expect the id of the existing entry
    and an answer that marks the message as a duplicate; with other content, expect error -32602 (invalid
    params)."""
    talk = bench.talk()
    first = talk.append(user("Hello", id="m1"))
    again = talk.append(user("Hello", id="m1"), user("More"))
    fault = talk.refusal("session/append", messages=[user("Other", id="m1")])

    expect(
        again.entry_ids[:1] == first.entry_ids,
        f"the entry id of the first message, {first.entry_ids}",
        again.entry_ids,
    )
    expect(again.duplicates == ("m1",), "m1 in duplicates", again.duplicates)
    expect(
        fault.code == -32602,
        "error -32602 for the same id with other content",
        f"{fault.code}: {fault.message}",
    )
    expect(
        talk.history_texts() == ("Hello", "More"), "each message once in the history", talk.history_texts()
    )


@check(
    "a-redacted-secret-is-gone",
    law="Methods: session/redact",
    says="The content of a redacted message is in no view, no history, no search result and no file of the "
    "data folder.",
    mend="Rewrite the journal before you answer, and rebuild indexes and caches that were computed from it.",
)
def redacted(bench: Bench) -> None:
    """Redact a message. Expect its content in no answer and in no file."""
    home, secret = bench.home(), "hunter2-correct-horse"
    talk = bench.talk(user("Hello"), user(f"The key is {secret}."), assistant("Noted."), on=bench.fresh(home))
    entry = talk.history()[1].entry_id
    talk.peer.result(talk.ask("session/redact", entry_ids=[entry]), shapes.Nothing)

    seen = (*talk.texts(), *talk.history_texts(), *(hit.snippet for hit in talk.search("hunter2")))
    told = [text for text in seen if secret in text]
    files = [path.name for path in home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    expect(not told, "the secret in no view, history or search result", told)
    expect(not files, "the secret in no file of the data folder", files)
    expect(
        len(talk.history_texts()) == 3, "the message still there, without its content", talk.history_texts()
    )


@check(
    "export-and-import",
    law="Methods: session/export, session/import",
    says="A session that is exported as `compactd` and imported elsewhere has the same history and view.",
    mend="Export every record of the journal, and import them unchanged.",
)
def export(bench: Bench) -> None:
    """Export a session and import it in another process. Expect the same history and view."""
    talk = bench.talk(*agent_turns(6), system_prompt="Be brief.", session_id="carried")
    talk.compact_or_fail(keep_recent=KEEP)
    out = talk.peer.result(talk.ask("session/export", format="compactd"), shapes.Exported)
    other = bench.fresh()
    into = other.call("session/import", {"content": out.content, "format": "compactd"}, shapes.Imported)
    there = Talk.start(other, {"session_id": into.session_id})

    expect(
        there.history_texts() == talk.history_texts(),
        "the same history in the imported session",
        there.history_texts(),
    )
    expect(there.texts() == talk.texts(), "the same view", there.texts())


@check(
    "an-undo-can-be-forced",
    law="Methods: session/undo",
    says="If the view after an undo would exceed the context window, `session/undo` answers error 1008 "
    "(CannotFit). With `force: true`, the compaction is undone anyway.",
    mend="Do not check the window if `force` is true: the next `turn/begin` compacts again.",
)
def forced_undo(bench: Bench) -> None:
    """Undo a compaction of a history that exceeds the window. Expect error 1008 (cannot fit), and success
    with `force`."""
    talk = bench.talk(*turns(10, 400), compaction={"context_window": 4000})
    talk.peer.result(talk.ask("turn/begin"), shapes.Begun)
    fault = talk.refusal("session/undo")
    expect(fault.code == 1008, "error 1008", f"{fault.code}: {fault.message}")
    undone = talk.peer.result(talk.ask("session/undo", force=True), shapes.Rewound)
    expect(undone.compaction_id == "c1", "the compaction undone with force: true", undone)


CHECKS = (restart, undo, undo_nothing, search, expand, branch, message_ids, redacted, export, forced_undo)
"""The checks in the order in which they run."""
