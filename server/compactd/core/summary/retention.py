"""Measure retention: the share of the facts in removed messages that the new context still contains.

A fact is an atom (path, identifier, literal), a command, or a sentence in which the user sets a limit. An
atom or a command counts if it occurs in at least two messages or if the user wrote it. A limit always counts.
Facts are found by code, from what `FactCache` knows of each message, without a model.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from compactd.core.authors.authors import stretches
from compactd.core.constraints.constraints import (
    NO_CONSTRAINTS,
    Constraints,
    constraint_lines,
    stated_constraints,
    without_them,
)
from compactd.core.constraints.user_text import without_bullet
from compactd.core.extract.facts import FactCache
from compactd.core.extract.line_roles import COMMAND, HEADER, SHELL, USER
from compactd.core.history.entries import Item, is_summary
from compactd.core.text.atoms import CONSTRAINT, ERROR, atoms_of_chunk, commands, words_of_chunk
from compactd.core.text.quoting import TOOL_MARK, quote_line
from compactd.core.text.whole_names import contains_whole_path, written_texts
from compactd.protocol.messages import Author, Retention

MAX_LOST = 50
"""At most this many lost facts are reported."""
MAX_LIKELY_LOST: Final = 4 * MAX_LOST
"""The facts that no message which stays contains are likely to be lost. While a model writes its summary, the
last lines of this many of them are looked up in advance."""

SEARCHED_CHARS: Final = 250_000
"""One search for an atom examines about this many characters, because a search holds the interpreter lock."""

ATOMS = ("path", "id", "lit")
"""The kinds of facts that are atoms."""
SENTENCE_SHARE = 0.6
"""A limit counts as kept if one line of the new context contains this share of its words, because a model may
rephrase it."""


NAMED: Final = {"path": "Files named in several messages", "command": "Commands that ran more than once"}
MAX_NAMED: Final = 12
"""What precedes the facts that are listed without the line they occurred in, and how many there are."""

MAX_LIKELY_NAMED: Final = 4 * MAX_NAMED
"""While a model writes its summary, this many of the paths that it may lose are looked up in advance."""

MAX_LIMITS: Final = 500
"""The most limits that are looked up in the new context, because each is compared with every line that shares
a word with it. The user's constraints come first, then the newest of the other sentences that set a limit."""

MAX_EMPTY_LINE_WORDS = 2
"""A line says something about an atom in it only if it has more words than this."""

LINE_CHARS = 200
"""A lost fact is listed with the last line it occurred in, if that line has at most this many characters;
otherwise alone."""


class Fact(Struct, frozen=True):
    """A piece of text in removed messages that may be needed later."""

    text: str
    kind: str
    """The kind of the fact: `path`, `id`, `lit`, `command` or `limit`."""
    uses: int
    """The number of removed messages that contain the fact."""


def facts(
    removed: Sequence[Item],
    *,
    cache: FactCache | None = None,
    demands: Constraints = NO_CONSTRAINTS,
) -> tuple[Fact, ...]:
    """Return the facts of `removed` that count: limits first, then the facts that most messages contain, then
    in order of appearance.

    Each constraint in `demands` is a limit of its own, and superseded ones are left out. There are at most
    `MAX_LIMITS` limits. O(features of the messages), less what `cache` already knows.
    """
    cache = cache if cache is not None else FactCache()
    uses: Counter[int] = Counter()
    own: set[int] = set()
    called: dict[str, int] = {}
    limits: dict[str, int] = {}
    shells: set[str] = set()
    for item in removed:
        known = cache.learn(item)
        mine: dict[int, None] = {}
        said: dict[str, None] = {}
        shells.update(call.call_id for call in known.calls if call.role == SHELL)
        for part in known.parts:
            shown = part.atoms
            mine.update(dict.fromkeys(shown))
            if part.role == USER:
                own.update(shown)
                listed: frozenset[str] | None = None
                for unit in part.units:
                    if CONSTRAINT.search(unit.text):
                        if listed is None:
                            listed = constraint_lines(item, demands)
                        if without_bullet(unit.text) in listed:
                            continue
                        limits.update(dict.fromkeys(_limits_in(unit.text.strip(), demands), 0))
            elif part.role in (HEADER, COMMAND) and part.call_id in shells:
                for unit in part.units:
                    text = unit.text.partition(" ")[2] if part.role == HEADER else unit.text
                    said.update(dict.fromkeys(commands(text)))
        uses.update(mine.keys())
        for command in said:
            called[command] = called.get(command, 0) + 1
    wanted = [feature for feature, n in uses.items() if n >= 2 or feature in own]
    named = cache.lexicon.atoms_of(frozenset(wanted))
    found = [Fact(text, "limit", 1) for text in _distinct_limits(limits, demands)]
    found += [Fact(text, "command", n) for text, n in called.items() if n >= 2]
    found += [Fact(named[feature][1], named[feature][0], uses[feature]) for feature in wanted]
    return tuple(sorted(found, key=lambda fact: (fact.kind != "limit", -fact.uses)))


class FactSearch:
    """The facts of removed messages, looked up once in the messages that stay and then in any number of
    summaries."""

    def __init__(
        self,
        removed: Sequence[Item],
        stays: Iterable[str],
        *,
        cache: FactCache | None = None,
        demands: Constraints = NO_CONSTRAINTS,
    ) -> None:
        """Find the facts of `removed`, and among them those that the messages which stay do not contain.
        `stays` are the texts of these messages. O(features of `removed` + length of `stays`)."""
        self._removed, self._demands = removed, demands
        self._shown = _ChunkCache()
        self._wanted = facts(removed, cache=cache, demands=demands)
        self._lost = _lost_facts(self._wanted, "\n".join(stays), self._shown)
        self._stood: dict[str, str] = {}
        """The last line of each atom that was looked up; empty if that line says nothing about the atom."""
        self._written: dict[str, bool] = {}
        self.programs = frozenset(
            fact.text.split(" ", 1)[0] for fact in self._wanted if fact.kind == "command"
        )
        """The first words of the commands that are facts."""

    def prepare_lines(self) -> None:
        """Look up, in advance, the lines of facts that a summary is likely to lose. O(text of the removed
        messages)."""
        self._find_last_lines(self._lost[:MAX_LIKELY_LOST])
        named = 0
        for fact in self._lost:
            if fact.kind == "path" and fact.text not in self._stood.get(fact.text, ""):
                named += self._is_written(fact.text)
                if named >= MAX_LIKELY_NAMED:
                    break

    def with_summary(self, summary: str) -> Retention:
        """Return how many of the facts are in the messages that stay or in `summary`, and which are lost.
        O(facts + length of the summary)."""
        if not self._wanted:
            return Retention(score=1.0, kept=0, lost=())
        lost = _lost_facts(self._lost, summary, self._shown)
        kept = len(self._wanted) - len(lost)
        return Retention(
            score=kept / len(self._wanted), kept=kept, lost=tuple(fact.text for fact in lost[:MAX_LOST])
        )

    def supplement(
        self, summary: str, budget_tokens: int, count: Callable[[str], int], *, quotes_tools: bool = True
    ) -> str:
        """Write lines that name lost facts: those that neither the messages that stay nor `summary` contain.
        Return them without a line end after the last; empty if `budget_tokens` have no room for any.

        The facts that most messages contain come first. Each is listed with the last line it occurred in and
        the reference to that line's entry, and with `(tool)` if a tool or a program wrote the line. Of the
        others, files and commands follow in one line each. If `quotes_tools` is false, lines of tools are
        left out unless they report an error, and lists of names too. O(text of the removed messages).
        """
        lost = _lost_facts(self._lost, summary, self._shown)
        lines: list[str] = []
        names: dict[str, list[str]] = {"path": [], "command": []}
        spent, written = 0, ""
        self._find_last_lines(lost[:MAX_LOST])
        stood = {fact.text: self._stood[fact.text] for fact in lost[:MAX_LOST] if fact.kind in ATOMS}
        for fact in lost:
            if spent >= budget_tokens:
                break
            if fact.kind in ATOMS and fact.text in written:
                continue
            # The constraints are already in the summary.
            line = without_them(stood.get(fact.text, ""), self._demands)
            if fact.text not in line:
                if fact.kind == "limit":
                    line = quote_line(" ".join(fact.text.split()), "assistant")
                else:
                    # A bare name says nothing, but the names of files and commands may follow in a list.
                    named = names.get(fact.kind)
                    if (
                        quotes_tools
                        and named is not None
                        and len(named) < MAX_NAMED
                        and (self._is_written(fact.text) if fact.kind == "path" else "<<" not in fact.text)
                    ):
                        named.append(" ".join(fact.text.split()))
                    continue
            line = _bullet(line)
            if not quotes_tools and line.startswith(TOOL_MARK) and ERROR.search(line) is None:
                continue
            cost = count(line + "\n")
            if spent + cost <= budget_tokens:
                lines.append(line)
                spent += cost
                written += line
        for kind, some in names.items():
            # The agent wrote its commands, but a tool may have written a path.
            author: Author = "assistant" if kind == "command" else "tool"
            line = _bullet(quote_line(f"{NAMED[kind]}: {'; '.join(some)}", author))
            cost = count(line + "\n")
            if some and spent + cost <= budget_tokens:
                lines.append(line)
                spent += cost
        return "\n".join(lines)

    def _find_last_lines(self, lost: Sequence[Fact]) -> None:
        """Look up the last line of each atom in `lost` that was not looked up before."""
        new = [fact.text for fact in lost if fact.kind in ATOMS and fact.text not in self._stood]
        if new:
            found = _last_lines(self._removed, new)
            self._stood.update((atom, found.get(atom, "")) for atom in new)

    def _is_written(self, path: str) -> bool:
        """Return whether the removed messages contain the path in this spelling. Facts name paths relative to
        the working folder, so the messages may only contain a longer form."""
        known = self._written.get(path)
        if known is None:
            known = self._written[path] = any(contains_whole_path(text, path) for text in self._texts)
        return known

    @functools.cached_property
    def _texts(self) -> list[str]:
        return [text for item in self._removed for text in written_texts(item.message.content)]


def _bullet(line: str) -> str:
    """Return a line as a list item. A marked line has no bullet, so that it begins with its mark."""
    return line if line.startswith(TOOL_MARK) else f"- {line}"


class _ChunkCache:
    """Searches for facts in a text. It remembers the names and the words of chunks (text without white
    space), because one summary is searched several times, each time a little longer."""

    def __init__(self) -> None:
        self._names = functools.cache(_names_of_chunk)
        self._words = functools.cache(words_of_chunk)

    def names_in(self, text: str) -> set[str]:
        """Return the names of the atoms in a text. O(length)."""
        return {name for chunk in set(text.split()) for name in self._names(chunk)}

    def lines_with(self, text: str) -> dict[str, set[int]]:
        """Return, for each word of a text, the numbers of the lines that contain it. O(length)."""
        found: dict[str, set[int]] = {}
        for number, line in enumerate(text.split("\n")):
            for chunk in line.split():
                for word in self._words(chunk):
                    found.setdefault(word, set()).add(number)
        return found


def _names_of_chunk(chunk: str) -> tuple[str, ...]:
    return tuple([value for _, value in atoms_of_chunk(chunk)])


def _limits_in(text: str, demands: Constraints) -> Iterator[str]:
    """Yield the limits that a line of the user's sets. `demands` are the user's constraints. Each of them
    that still applies and that the line contains word for word is yielded as a text of its own. What remains
    of the line follows if it sets a limit too. If the line contains none of the constraints, the whole line
    is yielded."""
    yield from stated_constraints(text, demands)
    rest = without_them(text, demands)
    if rest == text or CONSTRAINT.search(rest):
        yield rest


def _distinct_limits(limits: Iterable[str], demands: Constraints) -> list[str]:
    """Return at most `MAX_LIMITS` of these limits, in their order: all that are constraints of the user, and
    the newest of the others."""
    every = list(limits)
    over = len(every) - MAX_LIMITS
    if over <= 0:
        return every
    others = [text for text in every if text not in demands.sentences_in_force]
    dropped = frozenset(others[:over])
    return [text for text in every if text not in dropped]


def _last_lines(removed: Sequence[Item], wanted: Sequence[str]) -> dict[str, str]:
    """Return the last line of each of these atoms, if it says something about the atom. The line is a
    quotation: with the mark of its author and the reference to its entry."""
    found: dict[str, str] = {}
    for told in _newest_first(removed):
        # Many texts are joined, and searched at once for each atom. No atom contains a line end, so each
        # match is inside one text.
        begins = [0, *accumulate(len(text) + 1 for _, text, _ in told)]
        whole = "\n".join([text for _, text, _ in told])
        for atom in wanted:
            at = -1 if atom in found else whole.find(atom)
            while at >= 0:
                nth = bisect_right(begins, at) - 1
                author, text, entry_id = told[nth]
                line = _telling_line(text, atom)
                if line:
                    found[atom] = f"{quote_line(line.removeprefix('- '), author)} [{entry_id}]"
                    break
                at = whole.find(atom, begins[nth + 1])
        if len(found) == len(wanted):
            break
    return found


def _newest_first(removed: Sequence[Item]) -> Iterator[list[tuple[Author, str, str]]]:
    """Yield the texts of messages as (author, text, entry), the newest message first, in lists of about
    `SEARCHED_CHARS` characters."""
    run: list[tuple[Author, str, str]] = []
    size = 0
    for item in reversed(removed):
        for author, text in _said_texts(item):
            run.append((author, text, item.entry_id))
            size += len(text)
        if size >= SEARCHED_CHARS:
            yield run
            run, size = [], 0
    if run:
        yield run


def _telling_line(text: str, atom: str) -> str:
    """Return the last line of `text` that contains this atom; empty if that line says nothing about the atom
    or is too long."""
    at = text.rfind(atom)
    start = text.rfind("\n", 0, at) + 1
    line = text[start : start + 2 * LINE_CHARS].split("\n", 1)[0].strip()
    told = len(line) <= LINE_CHARS and line.isprintable() and len(_words(line)) > MAX_EMPTY_LINE_WORDS
    if told and not line.lstrip("-* ").startswith(("#", "<", "[")) and line.find(atom) >= 0:
        return line
    return ""


def _said_texts(item: Item) -> Iterator[tuple[Author, str]]:
    """Yield (author, text) for each stretch of a message that has one author. Yield nothing for an earlier
    summary."""
    if is_summary(item.message):
        return
    for stretch in stretches(item.message):
        yield stretch.author, stretch.text


def _lost_facts(wanted: Sequence[Fact], text: str, shown: _ChunkCache) -> Sequence[Fact]:
    """Return the facts of `wanted` that `text` does not contain, in their order. `shown` has caches."""
    if not wanted or not text:
        return wanted
    have = shown.names_in(text)
    folded = " ".join(text.split())
    places = shown.lines_with(text) if any(fact.kind == "limit" for fact in wanted) else {}
    return [fact for fact in wanted if not _is_kept(fact, have, folded, places)]


def _is_kept(fact: Fact, have: set[str], folded: str, places: dict[str, set[int]]) -> bool:
    """Return whether a text contains a fact. `have` are the names in the text, `folded` is the text on one
    line, `places` has the numbers of its lines by word."""
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
