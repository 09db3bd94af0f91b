"""A message's facts, packed and read again, unit (a quotable piece of the message) by unit."""

from __future__ import annotations

from array import array

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.extract.facts import FactCache, Facts, units_of
from compactd.core.extract.features import KINDS, LINE, MAX_ATOMS, RUN, WORD, Lexicon
from compactd.core.history.entries import Item
from compactd.protocol.messages import Block, Message, Role, Text, ToolCall, ToolResult
from tests.support.examples import examples

TOO_LARGE = "(" + "?!." * 700 + ")"
LONG = " ".join(f"word{n} == other_{n}," for n in range(60))

LINES = st.sampled_from(
    ["", " ", "x", "def load_entry(key):", "    return cache_table[key]", "12→ numbered", TOO_LARGE, LONG]
)
TEXTS = st.lists(LINES, max_size=8).map("\n".join)


def item(role: Role, *blocks: Block, entry_id: str = "e1") -> Item:
    return Item(entry_id=entry_id, body=Message(role=role, content=blocks), tokens=1)


def counts(facts: Facts) -> list[list[int]]:
    """Return for each part the number of features of each unit."""
    found = []
    for part in facts.parts:
        end = len(part.packed) - 3 * part.count
        found.append(list(array("H", part.packed[end - 2 * part.count : end])))
    return found


def messages() -> st.SearchStrategy[Item]:
    call = st.builds(
        lambda command, new: ToolCall(
            call_id="t1",
            name="Edit",
            arguments=Raw(
                msgspec.json.encode({"command": command, "new_string": new, "file_path": "a/b.py"})
            ),
        ),
        TEXTS,
        TEXTS,
    )
    return st.one_of(
        TEXTS.map(lambda text: item("user", Text(text=text))),
        st.tuples(TEXTS, call).map(lambda both: item("assistant", Text(text=both[0]), both[1])),
        TEXTS.map(lambda text: item("tool", ToolResult(call_id="t1", content=text))),
    )


@settings(deadline=None, max_examples=examples(100))
@given(messages())
def test_a_unit_that_is_read_again_is_the_one_whose_facts_were_packed(message: Item) -> None:
    cache = FactCache()
    facts = cache.learn(message)
    again = list(map(tuple, units_of(message, facts)))

    assert [len(units) for units in again] == [part.count for part in facts.parts]
    for at, (part, units) in enumerate(zip(facts.parts, again, strict=True)):
        assert sum(counts(facts)[at]) == len(part.unit_features) // 4
        lines = [cache.lexicon.line(unit.text) for unit in units]
        assert [len(line.features) for line in lines] == counts(facts)[at]
        assert [f for line in lines for f in line.features] == list(array("I", part.unit_features))


def test_a_line_too_large_to_be_quoted_leaves_its_neighbours_their_places() -> None:
    message = item("tool", ToolResult(call_id="t1", content=f"first_line = 1\n{'<>=+' * 900}\nlast_line = 2"))
    facts = FactCache().learn(message)

    assert [unit.text for unit in next(units_of(message, facts))] == ["first_line = 1", "last_line = 2"]


def test_the_number_of_a_feature_says_its_kind_and_is_the_same_in_every_lexicon() -> None:
    line = "def load_entry(key): return cache_table[key]"
    first, second = Lexicon(), Lexicon()
    second.line("something else was read before this one")

    assert first.line(line) == second.line(line)
    assert {f % KINDS for f in first.line("plain words of four and more stand here").features} == {
        WORD,
        RUN,
        LINE,
    }


def test_a_feature_has_its_number_still_when_what_helped_to_find_it_was_forgotten() -> None:
    lexicon = Lexicon()
    lines = [f"line {n} of load_entry_{n % 50} in src/file_{n}.py" for n in range(6_000)]
    first = [lexicon.line(line) for line in lines]
    lexicon.settle()

    assert [lexicon.line(line) for line in lines] == first


def test_facts_take_less_than_twice_the_text_they_are_about() -> None:
    text = "\n".join(
        f"    entry_{n} = table_{n % 7}.load(key_{n}, default=None)  # as before" for n in range(400)
    )
    facts = FactCache().learn(item("tool", ToolResult(call_id="t1", content=text)))

    assert sum(len(part.packed) for part in facts.parts) < 2 * len(text)


def test_the_same_directory_again_is_no_other_one() -> None:
    cache = FactCache("/home/me/proj")

    seen = [cache.strip(folder) for folder in ("/home/me/proj/", "/home/me", "")]

    assert seen == [False, True, True]


def test_facts_that_were_packed_are_the_ones_that_were_learnt_and_take_less() -> None:
    cache = FactCache()
    message = item("tool", ToolResult(call_id="t1", content="def load_entry(key): return cache_table[key]"))
    learnt = cache.learn(message)
    cache.settle()
    again = cache.learn(message)

    assert again == learnt
    assert again is not learnt
    assert list(cache.all_facts()) == [learnt]
    assert cache.learn(message) is again


def test_a_path_with_half_a_surrogate_pair_is_kept_as_it_is() -> None:
    arguments = Raw(b'{"file_path": "src/\\ud800.py"}')
    cache = FactCache()
    call = Item(
        entry_id="e1",
        body=Message(
            role="assistant", content=(ToolCall(call_id="t\ud800", name="Read", arguments=arguments),)
        ),
        tokens=1,
    )
    learnt = cache.learn(call)
    cache.settle()

    assert cache.learn(call) is learnt


def test_what_was_packed_is_forgotten_with_its_message_and_gives_its_size_back() -> None:
    cache = FactCache()
    cache.learn(item("user", Text(text="keep load_entry as it is")))
    cache.settle()
    cache.forget("e1")

    assert (cache.size, list(cache.all_facts())) == (0, [])


def test_atoms_that_were_packed_keep_their_numbers_and_their_order() -> None:
    cache = FactCache()
    cache.learn(item("user", Text(text="keep load_entry in src/app/main.py, never --force")))
    met = dict(cache.lexicon.atoms)
    cache.settle()
    again = cache.lexicon.atoms

    assert len(met) >= 3
    assert list(again.items()) == list(met.items())


def test_packed_atoms_are_found_by_name_and_by_number() -> None:
    cache = FactCache()
    cache.learn(item("user", Text(text="keep load_entry in src/app/main.py, never --force")))
    met = dict(cache.lexicon.atoms)
    cache.settle()
    cache.learn(item("user", Text(text="and save_entry in src/app/other.py"), entry_id="e2"))
    numbers = frozenset(list(met.values())[1:])
    named = cache.lexicon.atoms_of(numbers)

    assert named == {number: atom for atom, number in met.items() if number in numbers}
    assert cache.lexicon.atoms_of(frozenset(cache.lexicon.atoms.values())).keys() > frozenset(met.values())
    assert [cache.lexicon.number(atom) for atom in met] == list(met.values())
    assert cache.lexicon.number(("id", "never_met")) == -1


def test_atoms_that_are_packed_in_several_pieces_come_back_once_and_in_their_order() -> None:
    lexicon, other = Lexicon(), Lexicon()
    for start in range(0, 3 * MAX_ATOMS, MAX_ATOMS // 2):
        for n in range(start, start + MAX_ATOMS):
            line = f"load_entry_{n} in src/app_{n}.py"
            assert lexicon.line(line) == other.line(line)
        lexicon.pack_if_many()
    lexicon.pack()

    assert list(lexicon.atoms.items()) == list(other.atoms.items())


def test_a_message_that_is_shortened_in_another_way_has_other_facts() -> None:
    cache = FactCache()
    long, short = (
        replace(item("tool", ToolResult(call_id="t", content=text)), kind="stub")
        for text in ("load_entry\nsave_entry", "load_entry")
    )
    before = cache.learn(long)

    assert counts(cache.learn(short)) != counts(before)
    assert counts(cache.learn(long)) == counts(before)
