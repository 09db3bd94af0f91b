"""Run the reading test: can a reader of a hand-over text go on with the work?

`python -m benchmarks.reading texts FOLDER` writes the texts of all methods and the questions, for readers who
are no models or are asked elsewhere. `run FOLDER --base-url URL --model NAME` asks a model to read and to
grade them. `grade FOLDER --base-url URL --model NAME` only grades the answers in `FOLDER/answers`. `score
FOLDER` prints the table of the grades in `FOLDER/grades`, and with `--document` writes it to docs/reading.md.
`write-questions FOLDER` asks a model for questions about further recordings. `summarize FOLDER` adds the
texts of the strategy `summarize`: it writes the prompts to `FOLDER/prompts` and reads the answers that are
there, or with `--model` asks for them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.reading.asking import Model
from benchmarks.reading.document import write_page
from benchmarks.reading.questions import Questions, load_questions
from benchmarks.reading.recordings import (
    CLIPPED_CHARS,
    MEASURING,
    Recording,
    count_tokens,
    hash_of,
    load,
    ordered_sources,
    text_of,
)
from benchmarks.reading.roles import GRADER, READER, WRITER
from benchmarks.reading.scores import Answers, Grades, Row, letters_of, read_answers, row_of
from benchmarks.reading.summarising import SIZES, summarize
from benchmarks.reading.texts import METHODS
from compactd.core.summary.questions import Ask

RUN = "reading"
STEPS = ("texts", "summarize", "run", "grade", "score", "write-questions")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("folder", type=Path, help="where texts, answers and grades are")
    parser.add_argument("--base-url", default="http://127.0.0.1:8000/v1", help="an OpenAI-compatible API")
    parser.add_argument("--model", default="", help="the model that reads and grades")
    parser.add_argument("--tuning", action="store_true", help="the recordings that may be tuned on")
    parser.add_argument("--methods", help="names, separated by commas; default: all that have answers")
    parser.add_argument("--document", action="store_true", help="write docs/reading.md")
    given = parser.parse_args(arguments)
    folder: Path = given.folder
    methods = given.methods.split(",") if given.methods else None
    match given.step:
        case "texts":
            write_texts(folder, tuning=given.tuning, methods=methods or list(METHODS))
        case "score":
            rows = score(folder, methods or _answered(folder))
            print_table(rows)
            if given.document:
                write_page(rows)
        case step:
            model = Model(given.base_url, given.model)
            try:
                if step == "summarize":
                    write_summaries(folder, model if given.model else None, tuning=given.tuning)
                if step == "write-questions":
                    ask_for_questions(folder, model, tuning=given.tuning)
                if step == "run":
                    read_all(folder, model)
                if step in ("run", "grade"):
                    grade_all(folder, model)
            finally:
                model.close()
    return 0


def recordings(*, tuning: bool) -> Iterator[Recording]:
    """Yield the recordings for measuring or, with `tuning`, the others that have questions."""
    known = load_questions()
    for n, source in enumerate(ordered_sources()):
        if (n >= MEASURING) == tuning and hash_of(source.name) in known:
            yield load(source)


def write_texts(folder: Path, *, tuning: bool, methods: Sequence[str]) -> None:
    """Write each method's text for each recording, and the questions without their key."""
    questions = load_questions()
    for recording in recordings(tuning=tuning):
        asked = folder / "asked" / f"{recording.hash}.txt"
        asked.parent.mkdir(parents=True, exist_ok=True)
        asked.write_text(questions[recording.hash].asked + "\n")
        for method in methods:
            text = METHODS[method](recording)
            if text:
                file = folder / "texts" / method / f"{recording.hash}.txt"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)


def write_summaries(folder: Path, model: Model | None, *, tuning: bool) -> None:
    """Write the texts of the strategy `summarize` for which all answers are there."""

    def answer(ask: Ask, file: Path) -> str | None:
        if not file.exists() and model is not None:
            file.write_text(model.text(ask.system, ask.prompt, ask.max_tokens))
        return file.read_text() if file.exists() else None

    for recording in recordings(tuning=tuning):
        for method, size in SIZES.items():
            text = summarize(recording, size(recording), folder / "prompts" / method, answer)
            file = folder / "texts" / method / f"{recording.hash}.txt"
            if text is None:
                print(f"{method} {recording.hash}: an answer is missing")
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def read_all(folder: Path, model: Model) -> None:
    """Have each text read by itself."""
    for file in sorted((folder / "texts").glob("*/*.txt")):
        out = folder / "answers" / file.parent.name / f"{file.stem}.json"
        if not out.exists():
            asked = (folder / "asked" / file.name).read_text()
            said = model.ask(
                READER, f"Session: {file.stem}\n\n{file.read_text()}\n\n# Questions\n\n{asked}", Answers
            )
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_bytes(msgspec.json.encode(said))


def grade_all(folder: Path, model: Model) -> None:
    """Have all answers to the questions of one session graded together, under letters."""
    for session, questions in load_questions().items():
        out = folder / "grades" / f"{session}.json"
        some = _answered_for(folder, _answered(folder), session)
        if some and not out.exists():
            said = model.ask(GRADER, sheet(folder, questions, some), Grades)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_bytes(msgspec.json.encode(said))


def sheet(folder: Path, questions: Questions, methods: Sequence[str]) -> str:
    """Return what the grader sees of one session."""
    session = questions.session
    letters = letters_of(RUN, session, methods)
    answers = {
        letters[method]: read_answers(folder / "answers" / method / f"{session}.json").answers
        for method in methods
    }
    rows = [
        {
            "id": one.id,
            "question": one.question,
            "points": one.points,
            "answers": {letter: answers[letter].get(one.id, "") for letter in sorted(answers)},
        }
        for one in questions.questions
    ]
    return msgspec.json.format(msgspec.json.encode({"session": session, "questions": rows})).decode()


def score(folder: Path, methods: Sequence[str]) -> list[Row]:
    """Return a row for each method, from the grades. All methods that have answers were graded together."""
    known = load_questions()
    points: dict[str, dict[str, dict[str, list[float]]]] = {method: {} for method in methods}
    wrong: dict[str, dict[str, int]] = {method: {} for method in methods}
    readability: dict[str, dict[str, float]] = {method: {} for method in methods}
    tokens: dict[str, dict[str, int]] = {method: {} for method in methods}
    for file in sorted((folder / "grades").glob("*.json")):
        grades = msgspec.json.decode(file.read_bytes(), type=Grades)
        session = grades.session
        letters = letters_of(RUN, session, _answered_for(folder, _answered(folder), session))
        for method in _answered_for(folder, methods, session):
            letter = letters[method]
            found = grades.scores[letter]
            for one in known[session].questions:
                if len(found[one.id]) != len(one.points):
                    raise ValueError(f"{file}: {letter} {one.id} has {len(found[one.id])} grades")
            points[method][session] = found
            wrong[method][session] = len(grades.wrong.get(letter, ()))
            said = read_answers(folder / "answers" / method / f"{session}.json")
            readability[method][session] = said.readability
            tokens[method][session] = count_tokens((folder / "texts" / method / f"{session}.txt").read_text())
    return [
        row_of(method, known, points[method], wrong[method], readability[method], tokens[method])
        for method in methods
        if points[method]
    ]


def ask_for_questions(folder: Path, model: Model, *, tuning: bool) -> None:
    """Have questions written for the recordings that have none, into `folder`."""
    known = load_questions()
    for n, source in enumerate(ordered_sources()):
        if (n >= MEASURING) == tuning and hash_of(source.name) not in known:
            recording = load(source)
            text = text_of(recording.messages, CLIPPED_CHARS)
            said = model.ask(WRITER, f"Session: {recording.hash}\n\n{text}", Questions)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{recording.hash}.json").write_bytes(msgspec.json.format(msgspec.json.encode(said)))


def print_table(rows: Sequence[Row]) -> None:
    """Print the rows."""
    for row in rows:
        kinds = " ".join(f"{kind} {share:.0f}" for kind, share in row.kinds.items())
        print(
            f"{row.method:12} {row.tokens:6.0f} tokens  {row.overall:5.1f} ({row.low:.0f} to {row.high:.0f})"
            f"  {kinds}  worst {row.worst:.0f}  wrong {row.wrong}/{row.asked}"
            f"  readability {row.readability:.1f}  ({row.sessions} sessions)"
        )


def _answered(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "answers").iterdir() if path.is_dir())


def _answered_for(folder: Path, methods: Sequence[str], session: str) -> list[str]:
    return [one for one in methods if (folder / "answers" / one / f"{session}.json").exists()]


if __name__ == "__main__":
    raise SystemExit(main())
