"""Find atoms in a text: paths, identifiers and literals. Also find commands, words and sentences.

An atom is the smallest piece of text that counts as a fact: a pair `(kind, value)` with the kind `path`, `id`
(identifier) or `lit` (URL, flag, hash, version). Atoms contain no white space. So a text is split at white
space into chunks, and each distinct chunk is analysed once. Retention is measured with these definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compactd.core.text.lazy_patterns import LazyPattern

Atom = tuple[str, str]

CHUNK_CHARS = 300
"""The maximum length of a chunk, in characters. A longer run without white space is encoded data or
minified code; it has no atoms and no words."""

_EXTENSIONS = """
py pyi ipynb ts tsx js jsx mjs cjs go rs c h cc cpp hpp java kt rb php cs swift sh bash zsh ex exs eex heex
erl lua vim md mdx rst txt json jsonl yaml yml toml ini cfg conf lock sql html css scss svg xml proto tf env
mod sum log diff patch csv db sqlite Dockerfile Makefile
"""

_URL = LazyPattern(r"https?://[^\s\"'<>)\]}`,]+")
_PATH = LazyPattern(
    r"(?<![\w/.~@-])"
    r"(?:(?:~?/|\.\.?/)?(?:[\w.@+-]+/)+[\w.@+-]*\w"
    rf"|(?<![\w/.-])[\w-]+(?:\.[\w-]+)*\.(?:{'|'.join(_EXTENSIONS.split())})(?![\w/]))"
)
_ENDING = LazyPattern(rf"\.(?:{'|'.join(_EXTENSIONS.split())})(?![\w/])")
"""Matches a file extension. A name without a slash counts as a path only if it ends with one of these."""
_HEAD = LazyPattern(r"[A-Za-z_][A-Za-z0-9_]{4}")
"""Matches the first characters of an identifier."""
_IDENTIFIER = LazyPattern(r"(?<![\w$])[A-Za-z_$][\w$]{4,60}(?![\w$])")
_HUMP = LazyPattern(r"[a-z0-9][A-Z]")
"""Matches a change from lower to upper case inside a word."""
_FLAG = LazyPattern(r"(?<![\w-])--[a-z][a-z0-9-]{3,30}")
_HASH = LazyPattern(r"(?<![\w-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-])")
_VERSION = LazyPattern(r"(?<![\w.])v?\d+\.\d+\.\d+(?:[-+][\w.]+)?(?![\w.])")
_ONLY_NUMBERS = LazyPattern(r"[\d./-]+")

_WORD = LazyPattern(r"[a-z0-9_./-]{3,}")
_SIGN = LazyPattern(r"\w+")
_SPACELESS = LazyPattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_LETTERS = LazyPattern(r"[^\W\d_]{4,}")

_COMMON = """
the and for are was were been this that with from you they she not does did then than can could should would
will just also have has had but your our its their there here what which when where how all any some more most
other into about over out down now let need make sure use using used one two get got like want please only
"""
COMMON_WORDS = frozenset(_COMMON.split())
"""Words that say nothing about a line's content."""

CUE = LazyPattern(
    r"\b(?:decid|instead of|because|root cause|the (?:real )?(?:issue|problem|bug|fix|reason) (?:is|was)"
    r"|turns out|should (?:not|use|be)|must|never|always|rather than|won't|will use|switch(?:ed)? to"
    r"|workaround|the key|important)",
    re.IGNORECASE,
)
"""Matches a phrase with which people announce a decision."""

ERROR = LazyPattern(
    r"\b[Ee]rror\b|ERROR|\bFAIL(?:ED|URE)?\b|\bfailed\b|[Ee]xception|Traceback|panic:|undefined|not found"
    r"|[Cc]annot|denied|No such"
)
"""Matches a word that lines which report errors contain."""

CONSTRAINT = LazyPattern(
    r"\b(?:must|never|always|prefer|avoid|don'?t|do not|should(?:n't| not)?|only|without|make sure|ensure"
    r"|keep|no longer|required?|at (?:most|least)|important|not allowed|instead of|rather than|stick to)\b"
    r"|必须|不要|绝不|总是|务必|禁止",
    re.IGNORECASE,
)
"""Matches a word with which a user limits what may be done."""


def is_codelike(word: str) -> bool:
    """Return whether a word looks like an identifier and not like a word of prose: it has an underscore
    inside or changes from lower to upper case."""
    return "_" in word.strip("_") or (_HUMP.search(word) is not None and not word.isupper())


def plain_path(path: str, working_dir: str = "") -> str:
    """Return `path` without punctuation at its end, without `working_dir` at its beginning and without a
    leading `./`."""
    path = path.rstrip(".,:;")
    if working_dir and path.startswith(working_dir):
        path = path[len(working_dir) :].lstrip("/")
    return path.removeprefix("./")


def is_identifier(word: str) -> bool:
    """Return whether `word` is an atom of kind `id`. `word` must be a whole run of letters, digits and
    underscores."""
    return _HEAD.match(word) is not None and len(word) <= 61 and is_codelike(word)


def is_digest(word: str) -> bool:
    """Return whether `word` is a hash. `word` must be a whole run of letters, digits and underscores with
    no hyphen next to it."""
    return 7 <= len(word) <= 40 and _HASH.fullmatch(word) is not None


def atoms_of_chunk(chunk: str) -> tuple[Atom, ...]:
    """Return the atoms of a chunk (a text without white space), each once. Empty if the chunk is longer
    than `CHUNK_CHARS`. O(length)."""
    if len(chunk) < 5 or len(chunk) > CHUNK_CHARS:
        return ()
    found: dict[Atom, None] = {}
    if "://" in chunk:
        for url in _URL.findall(chunk):
            found["lit", url.rstrip(".,:;")] = None
        chunk = _URL.sub(" ", chunk)
    found.update(dict.fromkeys(dotted_atoms(chunk)))
    for word in _IDENTIFIER.findall(chunk):
        if is_codelike(word):
            found["id", word] = None
    found.update(dict.fromkeys(dashed_atoms(chunk)))
    return tuple(found)


def dotted_atoms(chunk: str) -> Iterator[Atom]:
    """Yield the paths, then the versions, in a text without white space and URLs. O(length)."""
    if "/" in chunk or _ENDING.search(chunk) is not None:
        for raw in _PATH.findall(chunk):
            path = plain_path(raw)
            slashes = path.count("/")
            if (
                len(path) >= 5
                and slashes < 14
                and ("." in path or slashes >= 2)
                and _ONLY_NUMBERS.fullmatch(path) is None
            ):
                yield "path", path
    if chunk.count(".") > 1:
        for version in _VERSION.findall(chunk):
            yield "lit", version


def dashed_atoms(chunk: str) -> Iterator[Atom]:
    """Yield the flags, then the hashes, in a text without white space and URLs. O(length)."""
    if "--" in chunk:
        for flag in _FLAG.findall(chunk):
            yield "lit", flag
    for digest in _HASH.findall(chunk):
        yield "lit", digest


def atoms(text: str) -> dict[Atom, None]:
    """Return the atoms of `text`, each once, in the order of first appearance. O(length)."""
    found: dict[Atom, None] = {}
    seen: set[str] = set()
    for line in text.split("\n"):
        for chunk in line.split():
            if chunk not in seen:
                seen.add(chunk)
                found.update(dict.fromkeys(atoms_of_chunk(chunk)))
    return found


def words_of_chunk(chunk: str) -> tuple[str, ...]:
    """Return the words of a chunk in lower case; none if it is longer than `CHUNK_CHARS`. Chinese, Japanese
    and Korean text gives pairs of neighbouring characters instead of words."""
    if len(chunk) > CHUNK_CHARS:
        return ()
    lower = chunk.lower()
    if lower.isascii():
        return tuple(w for w in (raw.strip("./-") for raw in _WORD.findall(lower)) if len(w) >= 2)
    found = [w for w in (raw.strip("./-") for raw in _WORD.findall(lower)) if len(w) >= 2]
    for run in _SPACELESS.findall(lower):
        found.extend(run[i : i + 2] for i in range(len(run) - 1))
    found.extend(w for w in _LETTERS.findall(lower) if not w.isascii() and _SPACELESS.match(w) is None)
    return tuple(found)


def signs_of_chunk(chunk: str) -> list[str]:
    """Return the runs of letters, digits and underscores in a chunk, in order. Empty if the chunk is longer
    than `CHUNK_CHARS`."""
    return _SIGN.findall(chunk) if len(chunk) <= CHUNK_CHARS else []


# A command line is split as the shell splits it. Redirections and comments are not part of a command.
_PARTING = LazyPattern(r"&&|\|\||[;\n|]")
_REDIRECTION = LazyPattern(r"\s*\d?>.*$")
_SPACE = LazyPattern(r"\s+")
_PROGRAM = LazyPattern(r"[\w./-]+ ")
_EVERYDAY = LazyPattern(
    r"(?:cd|ls|cat|head|tail|echo|pwd|sleep|which|wc|true|mkdir|rm|cp|mv|sed|grep|rg|find)\b"
)


def commands(line: str) -> Iterator[str]:
    """Yield the commands in a line of shell that are worth remembering: 6 to 100 characters long, with an
    argument, and not an everyday program such as `ls`."""
    for part in _PARTING.split(line[:20_000]):
        command = _REDIRECTION.sub("", _SPACE.sub(" ", part).strip()).strip()
        if (
            6 <= len(command) <= 100
            and not command.startswith(("#", '"', "'"))
            and _PROGRAM.match(command) is not None
            and _EVERYDAY.match(command) is None
        ):
            yield command


_SENTENCE_END = LazyPattern(r"(?<=[.!?])\s+|(?<=[。！？])")
_ASCII_SENTENCE_END = LazyPattern(r"[.!?](\s+)")


def sentences(line: str) -> list[str]:
    """Split `line` into sentences after full stops, question marks and exclamation marks."""
    if not line.isascii():
        return [s for s in _SENTENCE_END.split(line) if s]
    # The same for ASCII, and faster: only full stops are tried, not each character.
    found, start = [], 0
    for end in _ASCII_SENTENCE_END.finditer(line):
        found.append(line[start : end.start(1)])
        start = end.end()
    if start < len(line):
        found.append(line[start:])
    return found
