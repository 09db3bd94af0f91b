"""What docstrings and comments refer to exists in this repository: pages, their sections, laws, modules."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("server", "conformance", "tests", "tools", "benchmarks")
BEHAVIOUR = "docs/dev/behaviour.md"

ELSEWHERE = frozenset(
    (
        "AGENTS.md",  # an agent reads it from its user's project
        "CLAUDE.md",
        "GEMINI.md",
        "SKILL.md",
        ".aider.chat.history.md",  # Aider's session file
        "tools/server/README.md",  # llama.cpp
        "docs/api.md",  # Ollama
        "packages/coding-agent/docs/session.md",  # pi
        "protocol/message.py",  # klaude-code
        "protocol/models/usage.py",
    )
)
"""Files of other projects that this one reads or quotes."""

PAGE = re.compile(
    r'(?<![\w/*.-])([\w./-]*[\w-]\.md)\b(`?(?:,|:| and) (?:the rows? )?"[^"]+"(?:(?:,| and) "[^"]+")*)?'
)
MODULE = re.compile(r"(?<![\w/.-])((?:[\w-]+/)+[\w-]+\.py)\b")
FORMER_FOLDERS = frozenset(("bridges", "chatting", "conformance", "drawing", "rpc", "store"))
CITES = r"\.(md|py)\b|\b[Ll]aws?\b"
MAY_CITE = re.compile(CITES)
COMMENT_MAY_CITE = re.compile(rf"#.*({CITES})")
LAWS = re.compile(r"\b[Ll]aws? (\d+(?:(?:, | and |, and )\d+)*)\b")


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings and runs of comments, each on one line, with the line where it starts. Nothing of a source
    that cites nothing."""
    if not MAY_CITE.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, " ".join(text.split())
    if not COMMENT_MAY_CITE.search(source):
        return
    run: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if run and line != last + 1:
            yield first, " ".join(run)
            run = []
        if not run:
            first = line
        run.append(token.string.lstrip("# "))
        last = line
    if run:
        yield first, " ".join(run)


def plain(title: str) -> str:
    """`title` without marks, number and a full stop at its end."""
    return re.sub(r"^\d+\. ", "", re.sub(r"[`*]", "", title)).strip(" .:")


@cache
def titles_of(page: str) -> frozenset[str]:
    """What a page can be cited by: its headings, its bold words, the first cells of its tables."""
    text = (ROOT / page).read_text("utf-8")
    found = re.findall(r"^#+ (.+)$|\*\*(.+?)\*\*|^\| ([^|]+?) \|", text, re.M)
    return frozenset(plain(part) for row in found for part in row if part)


@cache
def laws() -> frozenset[str]:
    section = (ROOT / BEHAVIOUR).read_text("utf-8").split("\n## Laws\n")[1].split("\n## ")[0]
    return frozenset(re.findall(r"^(\d+)\. ", section, re.M))


@cache
def folders() -> frozenset[str]:
    """Names of the package's folders, today and before they were sorted into rooms."""
    package = ROOT / "server" / "compactd"
    return FORMER_FOLDERS.union(path.name for path in package.rglob("*") if path.is_dir())


def wrong_in(text: str) -> Iterator[str]:
    """Yield what `text` refers to and does not exist."""
    for page, quoted in PAGE.findall(text):
        if page in ELSEWHERE:
            continue
        if not (ROOT / page).is_file():
            yield f"{page} is not in the repository"
            continue
        first = re.search(r'"([^"]+)"', quoted)
        if first and plain(first[1]) not in titles_of(page):
            yield f'{page} has no section "{first[1]}"'
        if page == BEHAVIOUR:
            for title in re.findall(r'"([^"]+)"', quoted)[1:]:
                if plain(title) not in titles_of(page):
                    yield f'{page} has no section "{title}"'
    for module in MODULE.findall(text):
        is_there = any((ROOT / base / module).is_file() for base in ("server/compactd", "tests", ""))
        if module.split("/")[0] in folders() and module not in ELSEWHERE and not is_there:
            yield f"{module} is not in the repository"
    for numbers in LAWS.findall(text):
        yield from (f"there is no law {n}" for n in re.findall(r"\d+", numbers) if n not in laws())


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_docstrings_and_comments_cite_is_in_the_repository(folder: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {what}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, text in texts_of(file.read_text("utf-8"))
        for what in wrong_in(text)
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Rules: docs/dev/behaviour.md, laws 1, 2 and 9.", []),
        ("Rules: docs/dev/behaviour.md, law 10.", ["there is no law 10"]),
        ("(behaviour.md.)", ["behaviour.md is not in the repository"]),
        ('(docs/dev/behaviour.md, "Time travel" and "Bounds".)', []),
        ('(docs/dev/behaviour.md, "Bounds" and "Gone".)', ['docs/dev/behaviour.md has no section "Gone"']),
        ('(docs/specs.md, "opal.md", "1. Find Cut Point".)', []),
        ("As in AGENTS.md.", []),
        ("(`core/planning/plan.py`, `client/calls.py`.)", []),
        ("(`core/plan.py`.)", ["core/plan.py is not in the repository"]),
        ("(`rpc/wire.py`.)", ["rpc/wire.py is not in the repository"]),
        ("(aider/io.py, read 2026-11.)", []),
    ],
)
def test_a_citation_is_judged_by_what_the_page_has(text: str, wrong: list[str]) -> None:
    assert list(wrong_in(text)) == wrong


DEVELOPERS = (ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "dev").rglob("*.md")))
BASES = ("server/compactd", "tests", "docs", "docs/dev", "")
"""Folders from which the paths in these pages may start."""
MADE_AT_RUN_TIME = frozenset((".compactd.toml", "config.toml", "observed.jsonl"))


def files_named_in(text: str) -> Iterator[str]:
    """Paths between backticks that end like a file or a folder; `NAME` stands for a name of one's own."""
    for path in re.findall(r"`([\w./-]+(?:\.(?:py|md|jsonl|toml|svg)|/))`", text):
        if "NAME" not in path and path not in MADE_AT_RUN_TIME:
            yield path


def is_there(path: str) -> bool:
    """A bare file name is looked for in the whole package and in all tests."""
    if any((ROOT / base / path).exists() for base in BASES):
        return True
    return any(next((ROOT / base).rglob(path), None) for base in ("server/compactd", "tests"))


@pytest.mark.parametrize("page", DEVELOPERS, ids=lambda page: page.stem)
def test_files_that_a_page_for_developers_names_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", text) if not (page.parent / link).exists()]

    assert [path for path in files_named_in(text) if not is_there(path)] == []
    assert links == []


def names_beside_files(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of a file and a name in it: `` `file.py` (`name`, …) `` and `` `name` in `file.py` ``."""
    for path, names in re.findall(r"`([\w/]+\.py)`\s*\(([^()]*)\)", text):
        yield from ((path, name) for name in re.findall(r"`([A-Za-z_][\w.]*)`", names))
    for name, path in re.findall(r"`([A-Za-z_][\w.]*)` in\s+`([\w/]+\.py)`", text):
        yield path, name


def is_in(path: str, name: str) -> bool:
    """Return whether each part of a dotted name is a word of the file."""
    found = next((ROOT / base / path for base in BASES if (ROOT / base / path).is_file()), None)
    words = set(re.findall(r"\w+", found.read_text("utf-8"))) if found is not None else set()
    return words.issuperset(name.split("."))


@pytest.mark.parametrize("page", DEVELOPERS, ids=lambda page: page.stem)
def test_a_name_that_a_page_for_developers_gives_with_a_file_is_in_that_file(page: Path) -> None:
    pairs = list(names_beside_files(page.read_text("utf-8")))

    assert [f"{path}: {name}" for path, name in pairs if not is_in(path, name)] == []


def test_a_name_that_is_gone_is_found() -> None:
    text = "the loop (`agent/loop.py` (`AgentLoop`, `Gone.run`)); add it to `NO_SUCH` in `agent/loop.py`"

    assert list(names_beside_files(text)) == [
        ("agent/loop.py", "AgentLoop"),
        ("agent/loop.py", "Gone.run"),
        ("agent/loop.py", "NO_SUCH"),
    ]
    assert [is_in(*pair) for pair in names_beside_files(text)] == [True, False, False]
