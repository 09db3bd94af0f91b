"""Let the user pick a session from a list: in an app if textual is installed, otherwise by its number."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec

from compactd.cli.agent_files.choose import about
from compactd.cli.agent_files.places import TITLES, UNSIZED, AgentFile
from compactd.cli.agent_files.titles import title_of_file
from compactd.cli.framework.page import make_encodable, one_line, shorten_to_columns
from compactd.cli.framework.quantities import age_text, size_text

MAX_NUMBERED = 20
"""How many sessions are in the numbered list, so that it fits on a screen."""

_AGENT = 11
_AGE = 11
_SIZE = 7
_MIN_TITLE = 24
"""If a row has less room for the title, it contains only title and age."""


def pick(files: Sequence[AgentFile], own_count: int) -> AgentFile | None:
    """Let the user pick one of `files`; None if the user picks none. The first `own_count` of them belong to
    the current folder. The app is used if it is installed and if standard output is a terminal too, because
    the app asks it for its size.
    """
    has_screen = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if has_screen and find_spec("textual") is not None:
        from compactd.cli.agent_files.pick_app import PickApp

        app = PickApp(files, own_count)
        picked = app.run()
        if app.is_interrupted:
            raise KeyboardInterrupt
        return picked
    return pick_by_number(files)


def pick_by_number(files: Sequence[AgentFile]) -> AgentFile | None:
    """Print the first `MAX_NUMBERED` files with numbers on standard error, and read a number from standard
    input. Any other word restricts the list to the sessions whose row matches it. Return None at an empty
    line and at the end of the input.
    """
    shown = list(files)
    columns = os.get_terminal_size(sys.stderr.fileno()).columns
    _print_numbered(shown, columns)
    while True:
        sys.stderr.write("number, or words to search for (Enter: none): ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip()
        if not answer:
            return None
        if answer.isdecimal() and 1 <= int(answer) <= min(len(shown), MAX_NUMBERED):
            return shown[int(answer) - 1]
        found = matching(answer, [(file, title_of_file(file) or "") for file in files])
        if found:
            shown = found
            _print_numbered(shown, columns)
        else:
            sys.stderr.write(f"No session matches {one_line(answer)!r}.\n")


def _print_numbered(files: Sequence[AgentFile], columns: int) -> None:
    for number, file in enumerate(files[:MAX_NUMBERED], start=1):
        title = title_of_file(file) or file.path.name
        sys.stderr.write(f"{number:>3}  {row(file, title, columns - 6)}\n")
    if len(files) > MAX_NUMBERED:
        sys.stderr.write(f"     and {len(files) - MAX_NUMBERED:,} older sessions\n")


def row(file: AgentFile, title: str, columns: int) -> str:
    """Return a session as one line of `columns` columns: title, agent, age, size."""
    from rich.cells import set_cell_size

    age = age_text(file.modified_ns / 1e9, time.time())
    room = columns - _AGENT - _AGE - _SIZE - 6
    title = one_line(make_encodable(title))
    if room < _MIN_TITLE:
        room = max(1, columns - _AGE - 2)
        return f"{set_cell_size(shorten_to_columns(title, room), room)}  {age:>{_AGE}}"
    size = "" if file.agent in UNSIZED else size_text(file.size_bytes)
    name = set_cell_size(shorten_to_columns(title, room), room)
    return f"{name}  {TITLES[file.agent]:<{_AGENT}}  {age:>{_AGE}}  {size:>{_SIZE}}"


def matching(words: str, titled: Sequence[tuple[AgentFile, str]]) -> list[AgentFile]:
    """Return the files of `titled` (file, title) that match all words. Those with better matches come first;
    equal ones keep their order. O(all titles).
    """
    scored = [(match_score(words, title, _rest(file)), file) for file, title in titled]
    found = [(score, file) for score, file in scored if score is not None]
    return [file for _, file in sorted(found, key=lambda one: -one[0])]


def _rest(file: AgentFile) -> str:
    """Return what is searched besides the title."""
    return one_line(" ".join((*about(file), str(file.path))))


def match_score(words: str, title: str, rest: str) -> int | None:
    """Return how well a session matches all of `words`, which are separated by white space; None if a word
    does not match. A word matches if it is a part of the title or of `rest`, or if its letters occur in this
    order in the title. Whole parts of the title score most, above all at the beginning of a word.
    """
    title, rest = title.casefold(), rest.casefold()
    total = 0
    for word in words.casefold().split():
        at = title.find(word)
        if at >= 0:
            total += 4 if at == 0 or not title[at - 1].isalnum() else 3
        elif word in rest:
            total += 2
        elif _is_subsequence(word, title):
            total += 1
        else:
            return None
    return total


def _is_subsequence(word: str, text: str) -> bool:
    at = 0
    for letter in word:
        at = text.find(letter, at) + 1
        if not at:
            return False
    return True
