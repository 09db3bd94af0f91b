"""Atoms, commands, words and sentences, as the metric defines them.

The engine's `core/text/atoms.py` finds nearly the same. This definition belongs to the judge: the engine's
may change, while all figures are compared by this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.retention.records import Call, Json, Record

Atom = tuple[str, str]
"""(category, value): `path`, `id` or `lit`."""

_SUFFIXES = """
py pyi ts tsx js jsx mjs cjs go rs c h cc cpp hpp java kt rb php cs swift sh bash zsh ex exs eex heex erl lua
vim md mdx rst txt json jsonl yaml yml toml ini cfg conf lock sql html css scss svg xml proto tf env mod sum
log diff patch csv db sqlite ipynb Dockerfile Makefile
"""
_SUFFIX = "|".join(_SUFFIXES.split())

_URL = re.compile(r"https?://[^\s\"'<>)\]}`,]+")
_PATH = re.compile(
    rf"""
    (?<![\w/.~@-]) (?: ~?/ | \.{{1,2}}/ )? (?: [\w.@+-]+ / )+ [\w.@+-]* \w   # with a slash
    | (?<![\w/.-]) [\w-]+ (?: \.[\w-]+ )* \. (?: {_SUFFIX} ) (?![\w/])       # a file's name
    """,
    re.VERBOSE,
)
_NAME = re.compile(r"(?<![\w$])[A-Za-z_$][\w$]{4,60}(?![\w$])")
_HUMP = re.compile(r"[a-z0-9][A-Z]")
_LITERALS = (
    re.compile(r"(?<![\w-])--[a-z][a-z0-9-]{3,30}"),
    re.compile(r"(?<![\w-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-])"),
    re.compile(r"(?<![\w.])v?\d+\.\d+\.\d+(?:[-+][\w.]+)?(?![\w.])"),
)
_NUMBERS = re.compile(r"[\d./-]+")
_CLOSING = ".,:;"
_DEEPEST = 14


def bare_path(path: str, folder: str) -> str:
    """`path` without closing punctuation, without the session's folder and a leading `./`."""
    path = path.rstrip(_CLOSING)
    if folder and path.startswith(folder):
        path = path[len(folder) :].lstrip("/")
    return path.removeprefix("./")


def _is_path(path: str) -> bool:
    slashes = path.count("/")
    return (
        len(path) >= 5
        and slashes < _DEEPEST
        and ("." in path or slashes >= 2)
        and not _NUMBERS.fullmatch(path)
    )


def _is_name(word: str) -> bool:
    return "_" in word.strip("_") or (_HUMP.search(word) is not None and not word.isupper())


class Atoms:
    """Finds atoms with one session's folder taken off. No atom holds white space: chunks are looked up."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[str, tuple[Atom, ...]] = {}

    def __call__(self, text: str) -> set[Atom]:
        """The atoms of `text`. O(length), less for what was seen before."""
        found: set[Atom] = set()
        known = self._known
        for chunk in set(text.split()):
            if len(chunk) < 5:
                continue
            atoms = known.get(chunk)
            if atoms is None:
                atoms = known[chunk] = tuple(self._of_chunk(chunk))
            found.update(atoms)
        return found

    def of(self, record: Record) -> set[Atom]:
        """The atoms of a message: of its text, and of what its calls were given."""
        return self(record.text) | self(record.given)

    def _of_chunk(self, chunk: str) -> Iterator[Atom]:
        for url in _URL.findall(chunk):
            yield "lit", url.rstrip(_CLOSING)
        chunk = _URL.sub(" ", chunk)
        for raw in _PATH.findall(chunk):
            path = bare_path(raw, self._folder)
            if _is_path(path):
                yield "path", path
        for word in _NAME.findall(chunk):
            if _is_name(word):
                yield "id", word
        for pattern in _LITERALS:
            for literal in pattern.findall(chunk):
                yield "lit", literal


SHELLS = frozenset(
    [
        "bash",
        "Bash",
        "shell",
        "exec_command",
        "execute_bash",
        "run_command",
        "terminal",
        "local_shell_call",
        "run_commands",
    ]
)
_STEP = re.compile(r"&&|\|\||;|\n|\|")
_EVERYDAY = re.compile(
    r"(?:cd|ls|cat|head|tail|echo|pwd|sleep|which|wc|true|mkdir|rm|cp|mv|sed|grep|rg|find)\b"
)
_REDIRECTED = re.compile(r"\s*\d?>.*$")
_SPACE = re.compile(r"\s+")
_PROGRAM = re.compile(r"[\w./-]+ ")


def folded(text: str) -> str:
    """`text` with every run of white space as one space."""
    return _SPACE.sub(" ", text)


def commands(record: Record, folder: str) -> Iterator[str]:
    """The commands of a message's shell calls that are worth remembering."""
    for call in record.calls:
        if call.name in SHELLS:
            for step in _STEP.split(_command_line(call)):
                command = _REDIRECTED.sub("", folded(step).strip()).strip()
                if folder:
                    command = command.replace(folder + "/", "")
                if _is_command(command):
                    yield command


def _command_line(call: Call) -> str:
    given: Json = next((v for k in ("command", "cmd", "commands", "raw") if (v := call.arguments.get(k))), "")
    if isinstance(given, list):
        is_wrapped = given[:2] in (["bash", "-lc"], ["bash", "-c"])
        return " ".join(str(part) for part in (given[2:] if is_wrapped else given))
    return str(given)


def _is_command(text: str) -> bool:
    return (
        6 <= len(text) <= 100
        and " " in text
        and not _EVERYDAY.match(text)
        and not text.startswith(("#", '"', "'"))
        and _PROGRAM.match(text) is not None
    )


_COMMON = """
the and for are was were been this that with from you they she not does did then than can could should would
will just also have has had but your our its their there here what which when where how all any some more most
other into about over out down now let ive dont need make sure use using used one two get got like want please
only
"""
COMMON_WORDS = frozenset(_COMMON.split())
_WORD = re.compile(r"[a-z0-9_./-]{3,}")


def words(text: str) -> list[str]:
    """The content words of a text, lower case, in order."""
    return [word for word in _WORD.findall(text.lower()) if word not in COMMON_WORDS]


def neighbours(text: str) -> set[str]:
    """Return the words of a text that can be anchors of an atom next to them."""
    return {word.strip("./-") for word in words(text)}


_FENCED = re.compile(r"```.*?```", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of 4 to 60 words, fenced code left out."""
    for sentence in _SENTENCE_END.split(_FENCED.sub(" ", text)):
        sentence = sentence.strip(" -*#>\t")
        if 4 <= len(sentence.split()) <= 60:
            yield sentence


DECIDES = re.compile(
    r"""\b(?: decid | instead[ ]of | because | root[ ]cause
    | the[ ](?:real[ ])?(?:issue|problem|bug|fix|reason)[ ](?:is|was) | turns[ ]out
    | should[ ](?:not|use|be) | must | never | always | rather[ ]than | won't | will[ ]use
    | switch(?:ed)?[ ]to | workaround | the[ ]key | important )""",
    re.IGNORECASE | re.VERBOSE,
)
FAILS = re.compile(
    r"""\b[Ee]rror\b | ERROR | \bFAIL(?:ED|URE)?\b | \bfailed\b | [Ee]xception | Traceback | panic:
    | undefined | not[ ]found | cannot | Cannot | denied | No[ ]such""",
    re.VERBOSE,
)
