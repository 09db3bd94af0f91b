"""What counts as a probe, and when a context contains it."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.retention.atoms import Atoms, commands, sentences
from benchmarks.retention.judging import kept, linked, surprise, tally, written_and_seen
from benchmarks.retention.probes import Probes, probes_of
from benchmarks.retention.records import Call, Record, context_of, working_dir

FOLDER = "/home/someone/work"


def said(at: int, role: str, text: str = "", **call: object) -> Record:
    calls = tuple(Call(f"c{at}", name, given) for name, given in call.items())  # type: ignore[arg-type]
    return Record(at=at, role=role, text=text, calls=calls)


PAST = (
    said(0, "user", "Please keep the old signature of load_settings working for everyone."),
    said(1, "assistant", "Looking.", read={"path": f"{FOLDER}/app/settings.py"}),
    said(2, "tool", "def load_settings(path):\n    return parse_toml(path)  # reads the whole file at once"),
    said(
        3,
        "assistant",
        "We must keep load_settings because other teams call it.",
        bash={"command": "pytest -q"},
    ),
    said(4, "tool", "Error: parse_toml failed in app/settings.py\n1 failed"),
)
FUTURE = (
    said(5, "assistant", "I change parse_toml now.", bash={"command": "cd app && pytest -q > out.txt"}),
    said(6, "tool", "Makefile and load_settings are here"),
    said(7, "assistant", "Now load_settings and new_name.", edit={"path": "app/settings.py"}),
    said(8, "assistant", "Done:\n    return parse_toml(path)  # reads the whole file at once"),
)


def probes() -> Probes:
    return probes_of(PAST, FUTURE, Atoms(FOLDER), FOLDER)


def found_in(context: str) -> set[object]:
    return kept(probes(), context, Atoms(FOLDER), FOLDER)


def test_an_atom_is_a_probe_where_the_agent_writes_it_before_it_is_shown_again() -> None:
    seen = probes().atoms

    assert seen["id", "parse_toml"] == 5, "where it was written first"
    assert seen["path", "app/settings.py"] == 7
    assert ("id", "load_settings") not in seen, "a result had shown it"
    assert ("id", "new_name") not in seen, "the past does not hold it"


def test_a_command_is_a_probe_without_its_redirection_and_everyday_commands_are_none() -> None:
    seen = {value for category, value in probes().atoms if category == "cmd"}

    assert seen == {"pytest -q"}
    assert list(commands(FUTURE[0], FOLDER)) == ["pytest -q"]


def test_a_line_that_is_written_again_is_a_probe() -> None:
    assert probes().lines == {"return parse_toml(path)  # reads the whole file at once": 8}


def test_sentences_are_the_users_and_those_that_decide_or_fail_with_a_probe() -> None:
    seen = {(category, text) for (category, _), text in probes().sentences.items()}

    assert seen == {
        ("user", "Please keep the old signature of load_settings working for everyone."),
        ("error", "Error: parse_toml failed in app/settings.py"),
    }


def test_commonplace_atoms_are_no_probes() -> None:
    seen = probes_of(PAST, FUTURE, Atoms(FOLDER), FOLDER, {("id", "parse_toml")})

    assert ("id", "parse_toml") not in seen.atoms


def test_the_whole_past_holds_all_its_probes() -> None:
    seen = probes()

    assert found_in(context_of(PAST)) == {
        *seen.atoms,
        *seen.sentences,
        *(("line", line) for line in seen.lines),
    }


def test_a_bag_of_identifiers_does_not_win() -> None:
    seen = found_in("parse_toml app/settings.py load_settings")

    assert ("id", "parse_toml") not in seen


def test_an_atom_counts_where_two_words_that_it_stood_with_are_near() -> None:
    assert ("id", "parse_toml") in found_in("parse_toml reads it whole: the file")
    assert ("id", "parse_toml") not in found_in("parse_toml" + " x" * 150 + " reads the whole file")


def test_a_sentence_counts_where_most_of_its_words_stand_near_each_other() -> None:
    near = "keep signature old load_settings working"
    far = " ".join(word + " filler" * 20 for word in near.split())

    assert any(probe[0] == "user" for probe in found_in(near))
    assert not any(probe[0] == "user" for probe in found_in(far))


def test_the_folder_of_the_session_is_off_its_paths() -> None:
    assert working_dir(PAST) == f"{FOLDER}/app"
    assert Atoms(FOLDER)(f"see {FOLDER}/app/settings.py.") == {("path", "app/settings.py")}


def test_categories_with_few_probes_do_not_count() -> None:
    assert linked({"path": (1, 2), "id": (2, 4), "user": (3, 3)}) == 0.75
    assert linked({"path": (2, 2)}) is None
    assert tally({("id", "a"), ("id", "b")}, {("id", "a")}) == {"id": (1, 2)}


def test_what_is_known_costs_less_to_foretell() -> None:
    wrote, saw = written_and_seen(FUTURE, [10, 10, 10, 10])

    assert surprise(context_of(PAST), wrote, saw) < surprise("", wrote, saw)
    assert b"Makefile" in saw
    assert b"Makefile" not in wrote


def test_the_future_ends_after_so_many_tokens() -> None:
    wrote, saw = written_and_seen(FUTURE, [15_001, 10, 10, 10])

    assert b"I change parse_toml" in wrote
    assert saw == b"\n"


CHUNKS = st.text(alphabet="ab/._-{}09AZ:h~", min_size=0, max_size=24)


@given(st.lists(CHUNKS, max_size=8), st.sampled_from((" ", "\n", "\t")))
def test_no_atom_crosses_white_space(chunks: list[str], between: str) -> None:
    atoms = Atoms("")

    seen = atoms(between.join(chunks))

    assert seen == set().union(*(atoms(chunk) for chunk in chunks))
    assert not any(re.search(r"\s", value) for _, value in seen)


@given(st.text(max_size=300))
def test_sentences_have_four_to_sixty_words(text: str) -> None:
    assert all(4 <= len(sentence.split()) <= 60 for sentence in sentences(text))
