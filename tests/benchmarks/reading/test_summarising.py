"""The texts of the strategy `summarize`, whose answers are files."""

from __future__ import annotations

from pathlib import Path

from benchmarks.reading.recordings import Recording
from benchmarks.reading.summarising import summarize
from benchmarks.retention.records import Record
from compactd.core.summary.questions import Ask

BOXES = "\n".join(f"- The letters of {year} are in box_{year}.tsv." for year in range(1900, 1940))
SUMMARY = (
    f"## Goal\n- Sort the letters of the mill.\n## Next Steps\n- Burn nothing.\n## Critical Context\n{BOXES}"
)


def recording() -> Recording:
    """Return a long talk about letters."""
    said = [("user", "Sort the letters of the mill. Never burn one.")]
    for year in range(1900, 1940):
        said.append(("assistant", f"The letters of {year} are in box_{year}.tsv. " * 12))
        said.append(("user", f"Go on after {year}."))
    past = tuple(Record(at=at, role=role, text=text) for at, (role, text) in enumerate(said))
    return Recording("mill", "abc", past, "")


def answer(ask: Ask, file: Path) -> str | None:
    return file.read_text() if file.exists() else None


def test_without_answers_there_are_only_prompts(tmp_path: Path) -> None:
    assert summarize(recording(), 2_000, tmp_path, answer) is None

    prompt = (tmp_path / "abc.0.prompt.txt").read_text()
    assert prompt.startswith("At most ")
    assert "The letters of 1900 are in box_1900.tsv." in prompt
    assert summarize(recording(), 2_000, tmp_path, answer) is None


def test_with_answers_the_text_is_the_checked_summary_and_the_last_messages(tmp_path: Path) -> None:
    summarize(recording(), 2_000, tmp_path, answer)
    for prompt in tmp_path.glob("*.prompt.txt"):
        (tmp_path / prompt.name.replace("prompt", "answer")).write_text(SUMMARY)

    text = summarize(recording(), 2_000, tmp_path, answer)

    assert text is not None
    assert "- Burn nothing." in text
    assert "Never burn one." in text
    assert text.rstrip().endswith("[user] Go on after 1939.")


def test_a_recording_that_fits_stays_as_it_is(tmp_path: Path) -> None:
    text = summarize(recording(), 1_000_000, tmp_path, answer)

    assert text is not None
    assert text.startswith("[user] Sort the letters")
    assert not list(tmp_path.iterdir())
