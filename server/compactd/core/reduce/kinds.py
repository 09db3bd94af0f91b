"""Recognise what an output is, by its call: a file, a search, what programs print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from compactd.core.reduce.output import ToolOutput
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.file_operations import PATH_ARGUMENTS, Json
from compactd.core.work.shell import CheckKind, Command, check_kind, commands_in
from compactd.core.work.tool_kinds import command_line, tool_kind

OutputKind = Literal["file", "search", "listing", "edit", "shell", "web", "agent", "other"]
"""What an output is. `file` is the text of a file, however it was read. `edit` is what a tool says after it
changed a file."""

_LOOKS: Final[dict[OutputKind, str]] = {
    "file": "read read_file read_files view open cat read_many_files str_replace_based_edit_tool file_editor",
    "search": "grep search search_files search_file_content grep_search codebase_search",
    "listing": "glob ls list_files list_directory find_file list_dir find tree",
    "web": "webfetch websearch web_fetch fetch web_search fetch_url browse",
    "shell": "taskoutput bashoutput bash_output task_output read_terminal get_output",
}
_KINDS: Final[dict[str, OutputKind]] = {
    name: kind for kind, names in _LOOKS.items() for name in names.split()
}
"""What the output of a tool is, by its name in lower case (agents of `core/work/tool_kinds.py`, 2026-11)."""

_PROGRAMS: Final[dict[OutputKind, str]] = {
    "file": "cat sed head tail nl bat less more awk",
    "search": "grep rg ag ack egrep fgrep",
    "listing": "ls find tree fd du",
    "web": "curl wget http",
}
_BY_PROGRAM: Final[dict[str, OutputKind]] = {
    name: kind for kind, names in _PROGRAMS.items() for name in names.split()
}
"""What a shell command prints, by its program."""
_TICKETS: Final = frozenset(("gh", "glab", "bd", "jira", "linear", "tea"))
"""Programs that show what people wrote about the work."""
_SHOWS: Final = frozenset(("view", "show"))
EXCERPT_LINES: Final = 20
"""A search that prints so many lines around each find reads a file."""
_AROUND: Final = LazyPattern(r"(?:-[ABC]|--(?:after-|before-)?context=?)(?P<lines>\d*)")
_SILENT: Final = frozenset(
    ("cd", "export", "set", "source", ".", "mkdir", "touch", "rm", "mv", "cp", "chmod", "sleep", "true")
)
"""Programs that print little, so that the rest of the command line says what the output is."""
_FILTERS: Final = frozenset(
    ("head", "tail", "sort", "uniq", "wc", "tee", "cat", "less", "more", "sed", "cut", "tr", "awk", "column")
)
"""Programs that pass on what another one printed."""
_IN_GIT: Final[dict[str, OutputKind]] = {"grep": "search", "ls-files": "listing", "ls-tree": "listing"}


class Origin(Struct, frozen=True):
    """Where an output comes from."""

    kind: OutputKind
    programs: tuple[Command, ...] = ()
    """The commands of a shell call that print something, in order."""
    checks: frozenset[CheckKind] = frozenset()
    """What these commands check."""
    file: str = ""
    """The file that was read or changed, as the call spells it."""

    def runs(self, program: str, *words: str) -> bool:
        """Return whether a program runs, with one of `words` as its first plain word, if any are given."""
        return any(
            one.program == program
            and (not words or next((word for word in one.words if not word.startswith("-")), "") in words)
            for one in self.programs
        )

    @property
    def is_ticket(self) -> bool:
        """Whether the output is an issue or a pull request."""
        return any(one.program in _TICKETS and not _SHOWS.isdisjoint(one.words[:2]) for one in self.programs)


def recognise(output: ToolOutput) -> Origin:
    """Return where an output comes from. O(arguments)."""
    arguments = _plain(output.arguments)
    file = next((str(arguments[name]) for name in PATH_ARGUMENTS if arguments.get(name)), "")
    known = _KINDS.get(output.name.lower().rsplit("__", 1)[-1].removeprefix("functions."))
    what = tool_kind(output.name, arguments)
    if what == "shell":
        return _of_commands(commands_in(command_line(arguments)))
    if what in ("edit", "write", "patch"):
        return Origin("edit", file=file)
    if what == "agent":
        return Origin("agent")
    return Origin(known or "other", file=file)


def _of_commands(commands: tuple[Command, ...]) -> Origin:
    """Return where the output of a command line comes from."""
    sources = tuple(
        one
        for one in commands
        if one.program not in _SILENT and not (one.after.startswith("|") and one.after != "||")
    )
    checks: set[CheckKind] = set()
    kinds: set[OutputKind] = set()
    for one in sources:
        check = check_kind(one)
        if check is not None:
            checks.add(check)
        if one.program not in ("echo", "printf"):
            kinds.add(_of_command(one))
    kind: OutputKind = kinds.pop() if len(kinds) == 1 else "shell"
    piped = [one for one in commands if one.after == "|"]
    if kind == "file" and any(one.program not in _FILTERS for one in piped):
        kind = "shell"
    if checks:
        kind = "shell"
    file = ""
    if kind == "file" and len(sources) == 1:
        file = next((word for word in reversed(sources[0].words) if not word.startswith("-")), "")
    return Origin(kind, programs=sources, checks=frozenset(checks), file=file)


def _of_command(command: Command) -> OutputKind:
    if command.program == "git" and command.words:
        if command.words[0] == "show" and any(":" in word for word in command.words[1:]):
            # `git show main:src/app.py` prints the file.
            return "file"
        return _IN_GIT.get(command.words[0], "shell")
    if command.program in ("sed", "awk") and any(word.startswith("-i") for word in command.words):
        return "shell"
    kind = _BY_PROGRAM.get(command.program, "shell")
    return "file" if kind == "search" and _lines_around(command) >= EXCERPT_LINES else kind


def _lines_around(command: Command) -> int:
    """Return how many lines around what it finds a search prints."""
    for word, following in zip(command.words, (*command.words[1:], ""), strict=True):
        found = _AROUND.fullmatch(word)
        if found is not None:
            digits = found["lines"] or following
            return int(digits) if digits.isdecimal() and len(digits) < 8 else 0
    return 0


def _plain(arguments: Mapping[str, object]) -> dict[str, Json]:
    """Return the arguments that are JSON values without objects in them, and lists of texts."""
    plain: dict[str, Json] = {}
    for name, value in arguments.items():
        if value is None or isinstance(value, (str, int, float, bool)):
            plain[name] = value
        elif isinstance(value, (list, tuple)):
            plain[name] = [one for one in value if isinstance(one, str)] or [{} for _ in value]
    return plain
