"""Checks of reduced tool outputs: the shown text is shorter, and the original can be recovered (law 4)."""

from __future__ import annotations

import msgspec

from compactd_conformance import shapes
from compactd_conformance.bench import Bench, NotTried, check, expect
from compactd_conformance.frames import read
from compactd_conformance.talk import NeutralMessage, Talk, blocks_of, calls, result, resume, user

METHOD_NOT_FOUND = -32601


def output(lines: int = 300) -> str:
    """Return an output of which much can be left out. One line in the middle differs from the others."""
    return "\n".join(
        "needle\u2028in the\thaystack \0" if at == lines // 2 else f"10:00:{at % 60:02} worker {at} is ready"
        for at in range(lines)
    )


def started(bench: Bench) -> Talk:
    """Start a session in which a tool was called. Raise `NotTried` if the program has no `session/reduce`."""
    talk = bench.talk(user("Start the workers."), calls(("c1", "bash", {"command": "make"})))
    answer = talk.peer.answer(talk.ask("session/reduce", name="bash", arguments={}, content=""))
    if answer.error is not None and answer.error.code == METHOD_NOT_FOUND:
        raise NotTried("the program has no method `session/reduce`")
    return talk


def reduced(talk: Talk, content: str, **more: object) -> shapes.Reduced:
    """Reduce an output of the call `c1`."""
    given = {"name": "bash", "arguments": {"command": "make"}, "call_id": "c1", "content": content, **more}
    return talk.peer.result(talk.ask("session/reduce", **given), shapes.Reduced)


def original(talk: Talk, entry_id: str | None) -> str:
    """Return the original text that an entry has."""
    asked = talk.ask("session/expand", entry_ids=[entry_id])
    (entry,) = talk.peer.result(asked, shapes.Originals).entries
    blocks = blocks_of(read(entry.message, NeutralMessage))
    return "".join(msgspec.json.decode(block.content, type=str) for block in blocks)


@check(
    "a-reduced-output-is-kept-whole",
    law="Law 4",
    says="`session/reduce` returns a text that is not longer. The original is no message. It can be read "
    "with `session/expand`, and found with `session/search`, also after a restart.",
    mend="Store the original in the journal before you answer, as an entry that no view contains.",
)
def keeps(bench: Bench) -> None:
    """Reduce an output, append its result, close the session and open it again. Expect the original."""
    talk, text = started(bench), output()
    before = (talk.context().messages, talk.history_texts())
    done = reduced(talk, text)
    expect(done.reduced and len(done.content) < len(text), "a shorter text", done)
    expect(done.tokens_after < done.tokens_before, "fewer tokens", done)
    after = (talk.context().messages, talk.history_texts())
    expect(after == before, "the same context and history after session/reduce", after)
    expect(original(talk, done.entry_id) == text, "the original, word for word", "another text")
    talk.append(result("c1", done.content))
    hits = talk.search("needle\u2028in")
    expect([hit.entry_id for hit in hits] == [done.entry_id], "one hit, the original", hits)

    talk.peer.result(talk.ask("session/close"), shapes.Nothing)
    again, _ = resume(talk.peer, talk)
    expect(original(again, done.entry_id) == text, "the original after session/start", "another text")


@check(
    "a-repeated-reduction-is-one",
    law="Law 2",
    says="The same output of the same call gets the same answer again, and its original is stored once.",
    mend="Look for an output with the same `call_id` and the same content before you reduce.",
)
def repeats(bench: Bench) -> None:
    """Reduce the same output twice. Expect the same answer."""
    talk = started(bench)
    first = reduced(talk, output())
    expect(reduced(talk, output()) == first, "the same answer", "another answer")
    other = reduced(talk, output(400))
    expect(other.entry_id != first.entry_id, "another entry for another output of the call", other)


@check(
    "an-append-can-reduce",
    law="Law 4",
    says="`session/append` with `reduce` shows tool results reduced, and keeps their originals. Without it, "
    "nothing is reduced.",
    mend="Reduce each tool result before it is appended, and list what was reduced in `reductions`.",
)
def appends(bench: Bench) -> None:
    """Append a tool result with `reduce` and one without."""
    talk = started(bench)
    text = output()
    done = talk.append(result("c1", text), reduce=True)
    expect(len(done.reductions) == 1, "one reduction", done.reductions)
    (one,) = done.reductions
    expect(one.message_entry_id == done.entry_ids[0], "the message that shows the text", one)
    expect(original(talk, one.entry_id) == text, "the original, word for word", "another text")
    sent = talk.context().messages[-1]
    expect(len(bytes(sent)) < len(text) // 2, "a shorter result in the context", len(bytes(sent)))
    talk.append(calls(("c2", "bash", {})), result("c2", text))
    sent = talk.context().messages[-1]
    expect(len(bytes(sent)) > len(text), "the whole result without `reduce`", len(bytes(sent)))


@check(
    "observing-changes-nothing",
    law="Reduced outputs",
    says="`session/reduce` with `observe` returns the output unchanged and stores no original.",
    mend="With `observe`, store only the counts.",
)
def observes(bench: Bench) -> None:
    """Observe a reduction. Expect the whole output, and no hit for it."""
    talk = started(bench)
    done = reduced(talk, output(), observe=True)
    expect(done.content == output(), "the output, unchanged", "another text")
    expect(done.entry_id is None, "no entry", done.entry_id)
    expect(talk.search("needle") == (), "no hit", talk.search("needle"))


CHECKS = (keeps, repeats, appends, observes)
