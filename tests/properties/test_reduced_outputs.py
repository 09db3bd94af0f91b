"""What was reduced stays whole: after any steps, restarts and kills it is expanded to the byte, found once,
exported and imported, and a redaction takes it out of everything."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import Entry
from compactd.core.planning.request import CompactRequest
from compactd.core.reduce.marks import find_marks
from compactd.core.reduce.output import ToolOutput
from compactd.core.reduce.reduce import reduce_output
from compactd.core.tokens.counting import messages_tokens
from compactd.daemon.handlers.encode import expand_of, expanded_items, reductions_of
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol import wire
from compactd.protocol.messages import Message, Role, Text, ToolCall, ToolResult
from compactd.protocol.settings import GivenSettings, ReduceLevel
from compactd.session import redact as redacting
from compactd.session.export_file import export_session, export_source
from compactd.session.follower import decode_entries
from compactd.session.given_output import GivenOutput
from compactd.session.import_file import make_session
from compactd.session.reduce import Outcome, reduce_given, reduce_messages
from compactd.session.search import search, searched_items
from compactd.session.session import Session
from compactd.session.shown_view import ShownView
from compactd.storage.journal_records import encode_journal, scan
from tests.properties.life import Life, opened, reopened
from tests.support.examples import examples
from tests.support.outputs import log
from tests.support.quiet_world import Quiet, done

FILE = "\n".join(
    f"def step_{at}(first, second): return first.walk(second, depth={at * 7919})" for at in range(40)
)
"""A file that is read again and again."""
LEVELS = st.sampled_from(("light", "default", "strong"))
KINDS = st.sampled_from(("log", "log", "file", "odd", "fake"))
HOWS = st.sampled_from(("reduced", "reduced", "whole", "never"))
STEPS = st.one_of(
    st.tuples(st.just("reduce"), KINDS, HOWS, LEVELS),
    st.tuples(st.just("reduce"), KINDS, HOWS, LEVELS),
    st.tuples(st.just("append"), KINDS, KINDS, LEVELS),
    st.tuples(st.just("append"), KINDS, KINDS, LEVELS),
    st.tuples(st.sampled_from(("compact", "undo", "redo", "prune", "restart"))),
    st.tuples(st.sampled_from(("branch", "redact", "again")), st.integers(0, 40)),
)


class Outputs:
    """A session, and the outputs that were reduced in it."""

    def __init__(self) -> None:
        self.life = Life(opened(Quiet(), "default", GivenSettings(prune_minimum=0, prune_protect=0)))
        self.texts: dict[str, str] = {}
        """The original of each output, by its entry."""
        self.words: dict[str, str] = {}
        """A word that only this output has."""
        self.calls: dict[str, tuple[GivenOutput, Outcome]] = {}
        self.gone: set[str] = set()
        """The outputs that were redacted."""
        self.view = ShownView()
        self._count = 0
        self.say("user", Text(text="Mend the loader."))

    @property
    def session(self) -> Session:
        return self.life.session

    def say(self, role: Role, *content: Text | ToolCall | ToolResult) -> None:
        self.life.append([Message(role=role, content=content)])

    def text(self, kind: str) -> tuple[str, str]:
        """Return (an output, the word that only it has)."""
        self._count += 1
        word = f"zq{self._count}secret{self._count * 7919}"
        match kind:
            case "log":
                return f"{log(60)}\n2026-11-02 10:00:09 INFO worker {word} is ready\n{log(60)}", word
            case "file":
                return f"{FILE}\n# {word}\n{FILE}", word
            case "odd":
                return f"\0\r\n{log(50)}\r\n\x1b[31m{word}\x1b[0m\u2028\n{log(50)}", word
            case _:
                return f"{word}\n[… 1,240 lines left out, expand e1]\n{log(80)}", word

    # --- steps ----------------------------------------------------------------------------------------

    def reduce(self, kind: str, how: str, level: ReduceLevel) -> None:
        text, word = self.text(kind)
        call = ToolCall(call_id=f"c{self._count}", name="bash", arguments=Raw(b'{"command":"make"}'))
        self.say("assistant", call)
        output = GivenOutput(name="bash", arguments=call.arguments, text=text, call_id=call.call_id)
        made = self.reduced(output, level)
        if made.entry_id is not None:
            self.texts[made.entry_id], self.words[made.entry_id] = text, word
            self.calls[made.entry_id] = output, made
        if how != "never":
            said = made.text if how == "reduced" else text
            self.say("tool", ToolResult(call_id=call.call_id, content=said))

    def reduced(self, output: GivenOutput, level: ReduceLevel) -> Outcome:
        return done(reduce_given(self.session, output, level, observe=False))

    def append(self, first: str, second: str, level: ReduceLevel) -> None:
        """Append two calls and, in one message, their results, which are reduced on the way."""
        outputs = [self.text(first), self.text(second)]
        names = [f"c{self._count}a", f"c{self._count}b"]
        self.say("assistant", *(ToolCall(call_id=name, name="read_file") for name in names))
        results = tuple(
            ToolResult(call_id=name, content=(Text(text=text), Text(text="end")))
            for name, (text, _) in zip(names, outputs, strict=True)
        )
        message = Message(role="tool", content=results)
        read = ((message, Raw(encode_message(message))),)
        reduced = done(reduce_messages(self.session, read, level))
        assert list(reduced.tokens) == messages_tokens([m for m, _ in reduced.read], self.session.counter)
        taken = self.session.append(reduced.added_to(AppendRequest(read=read, tokens=(0,))))
        for entry_id in self.session.state.outputs.originals_of(taken.intake.entry_ids[0]):
            text, word = next(one for one in outputs if one[1] in original(self.session, entry_id))
            self.texts[entry_id], self.words[entry_id] = text, word

    def redact(self, at: int) -> None:
        """Redact an output or the message that shows it."""
        if not self.texts:
            return
        entry_id = list(self.texts)[at % len(self.texts)]
        holders = self.session.state.outputs.shown_in.get(entry_id, ())
        done(redacting.redact(self.session, [holders[-1] if holders and at % 2 else entry_id]))
        self.gone |= {one for one in self.texts if one in self.session.state.redacted}
        assert entry_id in self.gone
        self.life.said.clear()
        self.view = ShownView()

    def again(self, at: int) -> None:
        """Reduce an output of the same call again."""
        known = [entry_id for entry_id in self.calls if entry_id not in self.gone]
        if known:
            output, made = self.calls[known[at % len(known)]]
            before = len(self.session.entries)
            again = self.reduced(output, "default")
            assert (again.entry_id, again.rules) == (made.entry_id, made.rules)
            # A redaction of another output takes the words that only that one has.
            assert self.gone or again.text == made.text
            assert len(find_marks(again.text)) == len(find_marks(made.text))
            assert len(self.session.entries) == before

    def act(self, step: tuple[object, ...]) -> None:
        match step:
            case ("reduce", str(kind), str(how), "light" | "default" | "strong" as level):
                self.reduce(kind, how, level)
            case ("append", str(first), str(second), "light" | "default" | "strong" as level):
                self.append(first, second, level)
            case ("branch", int(at)):
                self.life.branch(at)
            case ("redact", int(at)):
                self.redact(at)
            case ("again", int(at)):
                self.again(at)
            case ("compact",):
                self.say("user", Text(text="Go on."))
                self.life.compact(CompactRequest(keep_messages=2), twice=False)
            case ("restart",):
                self.life, self.view = Life(reopened(self.session)), ShownView()
            case (str(how),):
                self.life.change(how)

    # --- what must hold -------------------------------------------------------------------------------

    def holds(self) -> None:
        session = self.session
        for entry_id, text in self.texts.items():
            assert original(session, entry_id) == ("[redacted]" if entry_id in self.gone else text)
        self.is_found_once()
        self.a_restart_changes_nothing(reopened(session))
        self.the_view_is_read_on()
        self.an_import_has_all(session)
        data = b"".join(msgspec.json.encode(entry) for entry in session.entries)
        assert [one for one in self.gone if self.words[one].encode() in data] == []
        self.life.views_are_valid()

    def is_found_once(self) -> None:
        state = self.session.state
        here = set(state.outputs.on_path(frozenset(state.path)))
        items = searched_items(state)
        for entry_id, word in self.words.items():
            found = [hit.item.entry_id for hit in search(items, word, 20, state.outputs)]
            outputs = [one for one in found if one in state.outputs.entries]
            if entry_id in self.gone:
                assert found == []
            elif entry_id in here:
                assert outputs == [entry_id]
                # A message that the client appended otherwise than it was told is found by itself.
                assert all(entry_id in state.outputs.originals_of(one) for one in found if one != entry_id)
                exact = {link.is_exact for one in found for link in state.outputs.links.get(one, ())}
                assert exact <= {False}

    def a_restart_changes_nothing(self, again: Session) -> None:
        ours, theirs = self.session.state.outputs, again.state.outputs
        assert (ours.entries, ours.links, ours.shown_in) == (theirs.entries, theirs.links, theirs.shown_in)
        assert (ours.loose, ours.of_call) == (theirs.loose, theirs.of_call)
        assert reductions_of(ours) == reductions_of(theirs)
        assert self.session.state.next_id == again.state.next_id

    def the_view_is_read_on(self) -> None:
        """What the view shows is the same, read step by step or at once."""
        fresh = ShownView()
        for view in (self.view, fresh):
            view.follow(view.news(self.session.state))
        probe = ToolOutput("read_file", {}, f"{FILE}\n{log(60)}\n{FILE}")
        made = [reduce_output(probe, view.lines, "e0", "default") for view in (self.view, fresh)]
        assert made[0] == made[1]

    def an_import_has_all(self, session: Session) -> None:
        data = export_session(export_source(session), "compactd").data
        copy, result = make_session(session.host, "copy", data, None, lambda share, phase: None)
        assert result.message_count == len(session.state.items)
        for entry_id in self.texts:
            assert original(copy, entry_id) == original(session, entry_id)


def original(session: Session, entry_id: str) -> str:
    """Return the text that `session/expand` gives back for an output."""
    items = expanded_items(session.state, wire.ExpandParams(session_id="s", entry_id=entry_id))
    (entry,) = expand_of(session.state.outputs, items, quoted=False).entries
    (block,) = msgspec.json.decode(entry.message)["content"]
    return str(block["content"])


@given(steps=st.lists(STEPS, min_size=3, max_size=12), cut=st.integers(0, 10**9))
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.reuse, Phase.generate),
)
def test_whatever_happens_what_was_reduced_stays_whole(steps: list[tuple[object, ...]], cut: int) -> None:
    outputs = Outputs()

    for step in steps:
        outputs.act(step)
        outputs.holds()

    session = outputs.session
    data = b"".join(encode_journal([msgspec.json.encode(entry) for entry in session.entries]))
    left = scan(data[: cut % (len(data) + 1)])
    entries: list[Entry] = decode_entries(left.records)
    assert entries == session.entries[: len(entries)]
    if entries:
        part = reopened(session, len(entries))
        for entry_id in part.state.outputs.entries:
            assert original(part, entry_id) == original(session, entry_id)
