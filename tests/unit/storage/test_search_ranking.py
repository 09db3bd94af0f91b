"""The order of search hits, and the excerpt of each."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.storage.search_ranking import SNIPPET_CHARS, Candidate, best, snippet


def said(text: str, *, entry: str = "e1", at: float = 1.0) -> Candidate:
    return Candidate("s", entry, "user", at, text)


def order(found: list[Candidate], *phrases: list[str], limit: int = 10) -> list[str]:
    return [one.entry_id for one, _ in best(found, phrases, limit)]


def test_what_says_it_more_often_in_fewer_words_comes_first() -> None:
    filler = "something else entirely " * 40
    once_in_many = said(f"the loader {filler}", entry="once in many")
    twice_in_few = said("the loader loads the loader", entry="twice in few")
    once_in_few = said("ask the loader please, again", entry="once in few")

    assert order([once_in_many, once_in_few, twice_in_few], ["loader"]) == [
        "twice in few",
        "once in few",
        "once in many",
    ]


def test_of_two_that_say_the_same_the_newer_comes_first() -> None:
    found = [said("the loader", entry=name, at=at) for name, at in (("old", 1), ("new", 3), ("older", 0))]

    assert order(found, ["loader"]) == ["new", "old", "older"]
    assert order(found, ["loader"], limit=1) == ["new"]


def test_words_that_stand_together_are_counted_together() -> None:
    apart = said("src here and there a loader and py, " * 3, entry="apart")
    together = said("see src/loader.py, that is: what src is, " * 3, entry="together")

    assert order([apart, together], ["src", "loader", "py"]) == ["together", "apart"]


def test_a_word_that_only_the_index_folds_is_a_hit_all_the_same() -> None:
    assert order([said("un café noir")], ["cafe"]) == ["e1"]
    assert order([], ["cafe"]) == []


def test_a_snippet_shows_the_hit_between_whole_words() -> None:
    text = "word " * 100 + "the needle is here " + "tail " * 100

    [(_, shown)] = best([said(text)], [["needle"]], 1)

    assert "the needle is here" in shown
    assert (shown[0], shown[-1]) == ("…", "…")
    assert set(shown.strip("…").split()) <= set(text.split())


@given(text=st.text(max_size=600), at=st.integers(0, 600))
@settings(deadline=None)
def test_a_snippet_is_one_short_line_of_the_text(text: str, at: int) -> None:
    shown = snippet(text, min(at, len(text)))

    assert len(shown) <= SNIPPET_CHARS + 2
    assert len(shown.splitlines()) <= 1
    assert shown.strip("…") in f"{' '.join(text.split())}"
