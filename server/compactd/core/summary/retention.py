"""Facts of the removed text that were used again, looked up in what takes its place.

A fact is an atom (path, identifier, literal), a command, or a sentence in which the user sets a limit. An
atom or command counts where it stands in two messages at least, or is the user's own; a limit always.
Found by code, from what `FactCache` knows of each message; no model is asked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final

from msgspec import Struct

from compactd.core.authors.authors import stretches
from compactd.core.authors.quoted_message import said
from compactd.core.constraints.constraints import (
    NO_DEMANDS,
    Constraints,
    demanded_lines,
    stated_in,
    without_them,
)
from compactd.core.constraints.user_text import without_bullet
from compactd.core.extract.facts import FactCache
from compactd.core.extract.line_roles import COMMAND, HEADER, SHELL, USER
from compactd.core.extract.named import Names
from compactd.core.history.entries import Item, is_summary
from compactd.core.text.atoms import CONSTRAINT, atoms_of_chunk, commands, words_of_chunk
from compactd.core.text.quoting import OWN, quoted_line
from compactd.core.text.search import stands_alone, texts_written
from compactd.protocol.messages import Author, Retention

MAX_LOST = 50
LIKELY_LOST: Final = 4 * MAX_LOST
"""Of the facts that what stays does not hold, looked for while a model writes its summary."""

SEARCHED_CHARS: Final = 250_000
"""Of text that one search for an atom looks at, about: it holds the interpreter."""

ATOMS = ("path", "id", "lit")
SENTENCE_SHARE = 0.6
"""Of a sentence's words, so many must stand in one place of the new context: a model may say it otherwise."""


MAX_LIMITS: Final = 500
"""Limits that are looked up: each is compared with every line that shares a word with it. The user's
constraints are always among them; of other sentences that set one, the newest are."""

TELLING = 2
"""Telling words of a line that says something about what stands in it."""

LINE_CHARS = 200
"""A lost fact is named by the line it stood in, up to this length; else by itself."""


class Fact(Struct, frozen=True):
    """Something of the past that may be needed."""

    text: str
    kind: str
    """`path`, `id`, `lit`, `command` or `limit`."""
    uses: int
    """Messages it stands in."""


def facts(
    removed: Sequence[Item], *, cache: FactCache | Names | None = None, demands: Constraints = NO_DEMANDS
) -> tuple[Fact, ...]:
    """The facts of `removed` that were used again, most used first, then as they first appear. Each of
    `demands` is a limit by itself, and what is superseded is none. Limits are at most `MAX_LIMITS`.

    O(features of the messages), with what `cache` knows.
    """
    cache = cache if cache is not None else FactCache()
    uses: dict[int, int] = {}
    own: set[int] = set()
    called: dict[str, int] = {}
    limits: dict[str, int] = {}
    shells: set[str] = set()
    for item in removed:
        known = cache.learn(item)
        mine: set[int] = set()
        said: dict[str, None] = {}
        shells.update(call.call_id for call in known.calls if call.role == SHELL)
        for part in known.parts:
            shown = part.atoms
            for feature in shown:
                if feature not in mine:
                    mine.add(feature)
                    uses[feature] = uses.get(feature, 0) + 1
            if part.role == USER:
                own.update(shown)
                listed: frozenset[str] | None = None
                for unit in part.units:
                    if CONSTRAINT.search(unit.text):
                        if listed is None:
                            listed = demanded_lines(item, demands)
                        if without_bullet(unit.text) in listed:
                            continue
                        limits.update(dict.fromkeys(_limits_in(unit.text.strip(), demands), 0))
            elif part.role in (HEADER, COMMAND) and part.call_id in shells:
                for unit in part.units:
                    text = unit.text.partition(" ")[2] if part.role == HEADER else unit.text
                    said.update(dict.fromkeys(commands(text)))
        for command in said:
            called[command] = called.get(command, 0) + 1
    wanted = [feature for feature, n in uses.items() if n >= 2 or feature in own]
    named = cache.lexicon.named(frozenset(wanted))
    found = [Fact(text, "limit", 1) for text in _looked_up(limits, demands)]
    found += [Fact(text, "command", n) for text, n in called.items() if n >= 2]
    found += [Fact(named[feature][1], named[feature][0], uses[feature]) for feature in wanted]
    return tuple(sorted(found, key=lambda fact: (fact.kind != "limit", -fact.uses)))


def retention(
    removed: Sequence[Item], new_context: Iterable[str], *, cache: FactCache | None = None
) -> Retention:
    """How many of the facts of `removed` the texts of the new context still hold.

    O(features of `removed` + length of the new context); `lost` holds at most `MAX_LOST`.
    """
    return FactSearch(removed, new_context, cache=cache).with_summary("")


class FactSearch:
    """The facts of what was removed: looked up in what stays once, then in one summary or another."""

    def __init__(
        self,
        removed: Sequence[Item],
        stays: Iterable[str],
        *,
        cache: FactCache | Names | None = None,
        demands: Constraints = NO_DEMANDS,
    ) -> None:
        """O(features of `removed` + length of what stays)."""
        self._removed, self._demands = removed, demands
        self._shown = _Shown(_Names(), _Words())
        self._wanted = facts(removed, cache=cache, demands=demands)
        self._lost = _lost(self._wanted, "\n".join(stays), self._shown)
        self._stood: dict[str, str] = {}
        """The last lines of the atoms that were looked for; empty where none says something about it."""
        self._written: dict[str, bool] = {}
        self.programs = frozenset(
            fact.text.split(" ", 1)[0] for fact in self._wanted if fact.kind == "command"
        )
        """What the commands that were run more than once begin with."""

    def look_ahead(self) -> None:
        """Finds the lines of the facts that any summary is likely to lose. O(text of what was removed)."""
        self._stood_last(self._lost[:LIKELY_LOST])
        for fact in self._lost:
            if fact.kind == "path" and fact.text not in self._stood.get(fact.text, ""):
                self._is_written(fact.text)

    def with_summary(self, summary: str) -> Retention:
        """How many of the facts stand in what stays or in `summary`. O(facts + length of the summary)."""
        if not self._wanted:
            return Retention(score=1.0, kept=0, lost=())
        lost = _lost(self._lost, summary, self._shown)
        kept = len(self._wanted) - len(lost)
        return Retention(
            score=kept / len(self._wanted), kept=kept, lost=tuple(fact.text for fact in lost[:MAX_LOST])
        )

    def supplement(self, summary: str, budget_tokens: int, count: Callable[[str], int]) -> str:
        """Lines that name what stands neither in what stays nor in `summary`, to stand under Critical
        Context; empty where none has room.

        Most used first; each by the last line it stood in, with its entry, and with `(tool)` where a tool or
        a program said that line. Ends without a line end. O(text of what was removed).
        """
        lost = _lost(self._lost, summary, self._shown)
        lines: list[str] = []
        spent, written = 0, ""
        self._stood_last(lost[:MAX_LOST])
        stood = {fact.text: self._stood[fact.text] for fact in lost[:MAX_LOST] if fact.kind in ATOMS}
        for fact in lost:
            if spent >= budget_tokens:
                break
            if fact.kind in ATOMS and fact.text in written:
                continue
            # The constraints stand in the summary by themselves.
            line = without_them(stood.get(fact.text, ""), self._demands)
            if fact.kind == "path" and fact.text not in line and not self._is_written(fact.text):
                continue
            line = f"- {line if fact.text in line else self._alone(fact)}"
            cost = count(line + "\n")
            if spent + cost <= budget_tokens:
                lines.append(line)
                spent += cost
                written += line
        return "\n".join(lines)

    def _stood_last(self, lost: Sequence[Fact]) -> None:
        """Finds the last lines of those atoms that were not looked for before."""
        new = [fact.text for fact in lost if fact.kind in ATOMS and fact.text not in self._stood]
        if new:
            found = _last_lines(self._removed, new)
            self._stood.update((atom, found.get(atom, "")) for atom in new)

    def _is_written(self, path: str) -> bool:
        """Whether a path was written as it is named here: without the folder that names are told without."""
        known = self._written.get(path)
        if known is None:
            known = self._written[path] = any(stands_alone(text, path) for text in self._texts)
        return known

    def _alone(self, fact: Fact) -> str:
        """A fact by itself, marked if neither the user nor the assistant wrote it."""
        is_own = fact.kind not in ATOMS or any(fact.text in text for text in self._own)
        return quoted_line(" ".join(fact.text.split()), "assistant" if is_own else "tool")

    @cached_property
    def _own(self) -> list[str]:
        """What the user and the assistant wrote."""
        return [part.text for item in self._removed for part in said(item.message) if part.author in OWN]

    @cached_property
    def _texts(self) -> list[str]:
        return [text for item in self._removed for text in texts_written(item.message.content)]


class _Names(dict[str, tuple[str, ...]]):
    """By chunk: the names of its atoms."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        found = self[chunk] = tuple([value for _, value in atoms_of_chunk(chunk)])
        return found


class _Words(dict[str, tuple[str, ...]]):
    """By chunk: its words."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        found = self[chunk] = words_of_chunk(chunk)
        return found


class _Shown(Struct):
    """What was found out about chunks: one summary is looked at several times, each time a little longer."""

    names: _Names
    words: _Words

    def names_in(self, text: str) -> set[str]:
        """The names of the atoms of a text. O(length)."""
        return {name for chunk in set(text.split()) for name in self.names[chunk]}

    def lines_with(self, text: str) -> dict[str, set[int]]:
        """By word the lines of a text that hold it. O(length)."""
        found: dict[str, set[int]] = {}
        for number, line in enumerate(text.split("\n")):
            for chunk in line.split():
                for word in self.words[chunk]:
                    found.setdefault(word, set()).add(number)
        return found


def _limits_in(text: str, demands: Constraints) -> Iterator[str]:
    """What of a user's line sets a limit."""
    yield from stated_in(text, demands)
    rest = without_them(text, demands)
    if rest == text or CONSTRAINT.search(rest):
        yield rest


def _looked_up(limits: Iterable[str], demands: Constraints) -> list[str]:
    """At most `MAX_LIMITS` of these, which are in the order of the conversation, and in that order."""
    every = list(limits)
    over = len(every) - MAX_LIMITS
    if over <= 0:
        return every
    others = [text for text in every if text not in demands.sentences_in_force]
    dropped = frozenset(others[:over])
    return [text for text in every if text not in dropped]


def _last_lines(removed: Sequence[Item], wanted: Sequence[str]) -> dict[str, str]:
    """The last line that says something about each of these atoms, marked and with its entry."""
    found: dict[str, str] = {}
    for told in _newest_first(removed):
        # One search for each atom in many texts at once: no atom reaches over a line's end.
        begins = [0, *accumulate(len(text) + 1 for _, text, _ in told)]
        whole = "\n".join([text for _, text, _ in told])
        for atom in wanted:
            at = -1 if atom in found else whole.find(atom)
            while at >= 0:
                nth = bisect_right(begins, at) - 1
                author, text, entry_id = told[nth]
                line = _telling_line(text, atom)
                if line:
                    found[atom] = f"{quoted_line(line.removeprefix('- '), author)} [{entry_id}]"
                    break
                at = whole.find(atom, begins[nth + 1])
        if len(found) == len(wanted):
            break
    return found


def _newest_first(removed: Sequence[Item]) -> Iterator[list[tuple[Author, str, str]]]:
    """(author, text, entry) of what the messages say, newest first, in runs of about `SEARCHED_CHARS`."""
    run: list[tuple[Author, str, str]] = []
    size = 0
    for item in reversed(removed):
        for author, text in _said(item):
            run.append((author, text, item.entry_id))
            size += len(text)
        if size >= SEARCHED_CHARS:
            yield run
            run, size = [], 0
    if run:
        yield run


def _telling_line(text: str, atom: str) -> str:
    """The last line of `text` with this atom in it; empty where that line says nothing about it."""
    at = text.rfind(atom)
    start = text.rfind("\n", 0, at) + 1
    line = text[start : start + 2 * LINE_CHARS].split("\n", 1)[0].strip()
    told = len(line) <= LINE_CHARS and line.isprintable() and len(_words(line)) > TELLING
    if told and not line.lstrip("-* ").startswith(("#", "<", "[")) and line.find(atom) >= 0:
        return line
    return ""


def _said(item: Item) -> Iterator[tuple[Author, str]]:
    """(who said it, text) of what a message says in words, an earlier summary's left out."""
    if is_summary(item.message):
        return
    for stretch in stretches(item.message):
        yield stretch.author, stretch.text


def _lost(wanted: Sequence[Fact], text: str, shown: _Shown) -> Sequence[Fact]:
    """Those that do not stand in `text`, in their order."""
    if not wanted or not text:
        return wanted
    have = shown.names_in(text)
    folded = " ".join(text.split())
    places = shown.lines_with(text) if any(fact.kind == "limit" for fact in wanted) else {}
    return [fact for fact in wanted if not _stands(fact, have, folded, places)]


def _stands(fact: Fact, have: set[str], folded: str, places: dict[str, set[int]]) -> bool:
    if fact.kind in ATOMS:
        return fact.text in have or (fact.kind == "path" and fact.text in folded)
    if " ".join(fact.text.split()) in folded:
        return True
    if fact.kind == "command":
        return False
    words = set(_words(fact.text))
    near: dict[int, int] = {}
    for word in words:
        for line in places.get(word, ()):
            near[line] = near.get(line, 0) + 1
    return bool(words) and max(near.values(), default=0) >= SENTENCE_SHARE * len(words)


def _words(line: str) -> tuple[str, ...]:
    return tuple(w for chunk in line.split() for w in words_of_chunk(chunk))
