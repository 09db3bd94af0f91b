"""Read the files of the model registry: the packaged rows, whose hash is checked, and the user's models.toml.

A file that cannot be used does not stop lookups: a warning names it, and everything else is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compactd.core.models.registry import Override
    from compactd.core.models.rows import ModelRows

PACKAGED = Path(__file__).parent / "data"
"""The folder of models.jsonl and models.sha256, which tools/build_registry.py writes."""

PRICES_FROM = "models.dev and LiteLLM"
"""The sources of nearly all prices in the packaged rows; `src` of a row names its own."""
PRICES_AS_OF = "2026-11-22"
"""The day on which the sources of the packaged rows were read. Change it with models.sha256."""


def read_packaged(folder: Path = PACKAGED) -> tuple[ModelRows, tuple[str, ...]]:
    """Return (the packaged rows, warnings). If the hash of models.jsonl is not the one in models.sha256,
    there are no rows.

    The rows are not decoded yet. Reading 11,000 rows takes about 7 ms. No single step holds the GIL for 5 ms.
    """
    import hashlib

    from compactd.core.models.rows import ModelRows

    try:
        content = (folder / "models.jsonl").read_bytes()
        expected = (folder / "models.sha256").read_text("ascii").split()
    except (OSError, UnicodeError) as error:
        name = Path(getattr(error, "filename", None) or "models.sha256").name
        return ModelRows(()), (_describe_damage(name, "cannot be read"),)
    if expected != [hashlib.sha256(content).hexdigest(), "models.jsonl"]:
        return ModelRows(()), (
            _describe_damage("models.jsonl", "is not the file that was packaged (sha256 differs)"),
        )
    return ModelRows.of_lines(content.splitlines()), ()


def _describe_damage(name: str, what: str) -> str:
    """Return the warning about a packaged file that cannot be used."""
    return f"compactd/models/data/{name} {what}: context windows are only guessed. Reinstall compactd"


def read_overrides(path: Path | None) -> tuple[tuple[Override, ...], tuple[str, ...]]:
    """Return (the entries of models.toml, warnings with line numbers). Both are empty if there is no file.

    If one table is invalid, the others still apply.
    """
    if path is None or not path.exists():
        return (), ()
    import tomllib

    try:
        text = path.read_text("utf-8")
    except OSError as error:
        return (), (f"models.toml cannot be read: {error.strerror or error}",)
    except UnicodeError as error:
        return (), (f"models.toml cannot be read: {error}",)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return _piece_by_piece(text)
    tables = document.get("model", [])
    starts = _starts(text)
    if not isinstance(tables, list):
        return (), (f"models.toml: line {_line_of(text, 'model')}: write [[model]], with two brackets",)
    overrides: list[Override] = []
    warnings = [
        f"models.toml: line {_line_of(text, key)}: {key} is not known; the file may contain only [[model]]"
        for key in document
        if key != "model"
    ]
    for number, table in enumerate(tables):
        # Tables written as `model = [{…}]` have no line of their own.
        line = starts[number] if len(starts) == len(tables) else _line_of(text, "model")
        override, wrong = _override(table, text, line)
        overrides += override
        warnings += wrong
    return tuple(overrides), tuple(warnings)


def _piece_by_piece(text: str) -> tuple[tuple[Override, ...], tuple[str, ...]]:
    """Return what `read_overrides` returns, for text that is not valid TOML: read each [[model]] table
    separately."""
    import tomllib

    lines = text.splitlines()
    starts = [1, *(line for line in _starts(text) if line > 1)]
    overrides: list[Override] = []
    warnings: list[str] = []
    for start, end in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        try:
            tables = tomllib.loads("\n".join(lines[start - 1 : end - 1])).get("model", [])
        except tomllib.TOMLDecodeError as error:
            warnings.append(f"models.toml: {_sentence_with_line(str(error), start, end)}")
            continue
        for table in tables if isinstance(tables, list) else ():
            override, wrong = _override(table, text, start)
            overrides += override
            warnings += wrong
    return tuple(overrides), tuple(warnings)


def _override(table: object, text: str, line: int) -> tuple[list[Override], list[str]]:
    """Return (a list with the table as an override, warnings). The list is empty if the table is invalid.
    `line` is where the table begins."""
    import msgspec

    from compactd.core.models.registry import Override

    try:
        override = msgspec.convert(table, Override)
    except msgspec.ValidationError as error:
        field = str(error).partition("$.")[2].partition("`")[0]
        return [], [f"models.toml: line {_line_of(text, field, line)}: {_plain(str(error), field)}"]
    wrong: list[str] = []
    for field in ("context", "input", "output"):
        limit = getattr(override, field)
        if limit is not None and limit <= 0:
            wrong.append(
                f"models.toml: line {_line_of(text, field, line)}: {field} is {limit}; it must be above 0"
            )
    if not override.match.strip():
        wrong.append(
            f"models.toml: line {_line_of(text, 'match', line)}: match is empty; it must name a model"
        )
    if wrong:
        return [], wrong
    known = set(Override.__struct_fields__)
    unknown = [key for key in table if key not in known] if isinstance(table, dict) else []
    words = "use match, provider, context, input, output"
    return [override], [
        f"models.toml: line {_line_of(text, key, line)}: {key} is not known; {words}" for key in unknown
    ]


def _starts(text: str) -> list[int]:
    """Return the numbers, from 1, of the lines at which a [[model]] table begins."""
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if _without_blanks(line).startswith("[[model]]")
    ]


def _line_of(text: str, key: str, start: int = 1) -> int:
    """Return the number of the line that sets `key`, searched from line `start` to the next [[model]] table.
    Return `start` if no line sets `key`."""
    for number, line in enumerate(text.splitlines()[start - 1 :], start):
        bare = _without_blanks(line)
        if number > start and bare.startswith("[[model]]"):
            break
        if key and (bare.startswith((key + "=", f'"{key}"=', f"[{key}]", f"[{key}."))):
            return number
    return start


def _without_blanks(line: str) -> str:
    """Return a line without spaces and tabs."""
    return line.replace(" ", "").replace("\t", "")


def _plain(error: str, field: str) -> str:
    """Return msgspec's error message in words for a user: `context` instead of `$.context`."""
    sentence = (
        error.partition(" - at ")[0].replace("`", "").replace("Object missing required field", "there is no")
    )
    sentence = sentence.replace("int | null", "a whole number").replace("str | null", "a text")
    return (
        f"{field}: {sentence[:1].lower()}{sentence[1:]}" if field else f"{sentence[:1].lower()}{sentence[1:]}"
    )


def _sentence_with_line(error: str, start: int, end: int) -> str:
    """Return tomllib's message with the line number in the whole file. `start` and `end` are the lines of the
    piece that tomllib read.

    The message ends in `(at line 2, column 3)` or `(at end of document)`.
    """
    import re

    match = re.search(r" \(at line (\d+), column (\d+)\)$", error)
    if match is None:
        return f"line {end - 1}: {error.removesuffix(' (at end of document)').lower()}"
    return f"line {start - 1 + int(match.group(1))}: {error[: match.start()].lower()}"
