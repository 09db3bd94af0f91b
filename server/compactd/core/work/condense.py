"""Shorten a text that the agent wrote to the lines that tell the most.

The text is read into a tree: a heading, a bold title or a line that ends with a colon is the parent of what
follows it, and a list item is the parent of what is indented below it. A line is a node for each of its
sentences. Then the nodes are taken in the order of their worth for their length, each after its parents.
The items of a numbered list are taken together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from compactd.core.text.atoms import sentences
from compactd.core.work import prose

MAX_LINE_CHARS: Final = 400
"""A longer line is split into sentences."""
HEADING_CHARS: Final = 60
"""A longer line is no heading."""
SHORT_LINE_CHARS: Final = 240
"""If there is no room for all lines, no sentence has more characters than this."""
SPLIT_CHARS: Final = 110
"""If there is no room for all lines, a longer line is split into sentences."""
ITEM_CHARS: Final = 60
"""The items of a numbered list are shortened to this many characters, but no further."""
SENTENCE_WORDS: Final = 6
"""A line with more words than this is a sentence."""
NAME_WORDS: Final = 3
"""A line with no more words than this is a name."""
GAP_CHARS: Final = 3
"""What a line adds to its own characters: a separator and a mark where something is left out."""

MAX_NUMBER: Final = 999
"""The largest number of a list item."""
PLACE_WORTH: Final = 2.5
"""What the first line that tells something, and the last line, are worth for their place."""
VERDICT_WORTH: Final = 2.5
"""What a line near the end is worth if it sums up."""
QUESTION_WORTH: Final = 2.5
"""What a question in the last line is worth."""
ELDEST_WORTH: Final = 0.5
"""What the first line below a title or item is worth for its place."""
OPEN_WORTH: Final = 1.0
"""What a line is worth below a title that says that something is open, or that sums up."""
END: Final = 0.85
"""Where the end of a text begins."""
SUB_ITEM_COST: Final = 0.7
"""What an item loses that is part of another one."""
LEAD_COST: Final = 1.0
"""What a line loses that introduces others."""
PRAISE_COST: Final = 2.0
"""What a line loses that tells what is good about something."""
VALUE_SHARE: Final = 4.0
"""What the names and words of the most valuable line add to its worth."""
SERIES_SHARE: Final = 0.85
"""How much of all room a numbered list takes at most if its items are shortened as far as possible."""
FIRST_SHARE: Final = 0.55
"""How much of all room a numbered list takes at first, if this shortens no item too much."""
SERIES_WORTH: Final = 1.3
"""How much more an item of a numbered list is worth than another line."""

_TABLE: Final = re.compile(r"\A\s*\|.*\|\s*\Z")
_RULE: Final = re.compile(r"\A[\s|:=*_-]+\Z")
_HEADING: Final = re.compile(r"\A\s{0,3}(#{1,6})\s+")
_BOLD: Final = re.compile(r"\*\*(?=\S)((?:[^*\n]|\*(?!\*)){1,300}?)(?<=\S)\*\*")
_BULLET: Final = re.compile(r"\A(\s*)(?:[-*•+]|(\d{1,3})[.)])\s+")
_TITLE: Final = re.compile(
    r"\A\s*\*\*[^*\n]{1,120}\*\*[^\w\n]{0,9}(?:\([^()\n]{1,40}\)|\*\*[^*\n]{1,40}\*\*)?\W{0,9}\Z"
)
"""Matches a line that is only a title in bold letters."""
_NUMBERED: Final = re.compile(r"\A(?:[A-Z][a-z]{2,9} )?#?(\d{1,3})(?:[.):]| [—–·-])\s")
"""Matches the number of a title (`2. Results`, `Option 2: none`) or of a table's row."""
_CHAIN: Final = re.compile(r"\A\W*\w[^→\n]{0,60}→[^→\n]{1,60}→")
"""Matches a chain of arrows, such as an import cycle. It is kept even in a code block."""

# Patterns for lower case are matched against text in lower case: three times as fast as ignoring the case.
_OUTCOME: Final = re.compile(
    r"\b(?:passed|passes|passing|failed|fails|failing|fixed|committed|pushed|merged|reverted|removed|added"
    r"|changed|replaced|done|complete[d]?|verified|pending|remaining|open|blocked|broken|skipped|missing"
    r"|works|unchanged|not yet|still|todo|next)\b",
)
"""Words in a line about what was done, and how it ended."""
_CAUSE: Final = re.compile(
    r"\b(?:because|since|due to|caused? by|instead|revert\w*|unless|missing|only (?:if|when|triggers?)"
    r"|(?:does|do|did|is|are|was|ca|wo)n't|(?:does|do|did|is|are|was|will) not|cannot|will (?:fail|break)"
    r"|no longer|lacks?|never|turns out)\b",
)
"""Words in a line that gives a cause or a limit."""
_VERDICT: Final = re.compile(
    r"\b(?:ship it|lgtm|verdict|severity|(?:non-?)?blocking|critical|recommend\w*|conclusion|bottom line"
    r"|approved?|ready to (?:merge|ship)|all (?:[\w-]+ ){0,2}(?:tests?|checks?)(?: now)? pass(?:ed|es)?"
    r"|\d+ (?:tests )?(?:passed|failed|errors?)|nothing (?:is |was )?(?:committed|pushed)"
    r"|result:|the problem\b|root cause)",
)
"""Words in a line that sums up."""
_NAMES: Final = re.compile(r"`[^`\n]+`|\d|[/_.]\w")
"""Matches a part of a line that names something exactly."""
_ANCHORS: Final = re.compile(
    r"`[^`\n]{6,}`|\.\w{1,5}:\d|(?:Error|Exception)\b|[A-Z]-?\d|#\d|\d ?(?:%|m?s\b|[kMG]?i?B\b)|_\w|/\w+\.\w"
)
"""Matches a part of a line that leads to one place: a name, a place in a file, a number with its unit."""
_PLACE: Final = re.compile(r"\.\w{1,5}:\d")
"""Matches a place in a file."""
_ANNOUNCES: Final = re.compile(
    r"\A\W*(?:(?:good|great|perfect|excellent|ok(?:ay)?|alright|right|sure|done|now|next|first|then|so|finally)\b"
    r"[^\w`]{1,4}){0,3}(?:let me|now i|i'm (?:now |also )?going to|ready (?:for|to)|time to"
    r"|(?:i'll|i will|let's) (?:now |also |then )?(?:add|begin|check|continue|create|examine|explore|find|fix"
    r"|implement|inspect|investigate|look|make|move|proceed|read|review|run|search|see|start|summarize|take|test"
    r"|update|verify|write))\b",
)
"""Matches the beginning of a sentence that only says what the agent does next."""
_POLITE: Final = re.compile(
    r"\A\W*(?:great|perfect|excellent|good|nice|awesome|wonderful|done|all done|all set|sure|got it|i see"
    r"|ok(?:ay)?|absolutely|certainly|of course|you're (?:absolutely )?right|sounds good)\b"
    r"[^.!?:]{0,25}[.!]?\W*\Z"
    r"|\A\W*(?:let me know|feel free|happy to|hope this|is there anything)\b",
)
"""Matches a sentence that is only friendly."""
_OFFERS: Final = re.compile(
    r"\A\W*(?:want me|would you like|do you want|shall (?:i|we)|should (?:i|we)|ready)\b",
)
"""Matches the beginning of a question that offers to go on."""
_OPENS: Final = re.compile(
    r"\A\W*(?:(?:great|perfect|good|excellent|all done|done|sure)\b\W+)?(?:here(?:'s| is| are)\b|below\b"
    r"|summary\b|overview\b|details\b|changes(?: made)?:|the changes\b"
    r"|what (?:i |we |was )?(?:did|changed|done)\b)",
)
"""Matches a title or a line with a colon that what follows does not need."""
_OPEN: Final = re.compile(
    r"\W*(?:remaining|open|still|not yet|to ?do|blocked|left|what's left|next|root cause|verdict|conclusion"
    r"|recommendation|bottom line)\b"
)
"""Matches the title of a list that tells what is open, or why, or sums up."""
_LABEL: Final = re.compile(r"\A\s*(?:[-*•+] )?[A-Z][\w /-]{2,24}: ")
"""Matches a line that begins with a label, such as `Impact: `."""
_PRAISES: Final = re.compile(
    r"\b(?:benefits?|advantages|pros|strengths|highlights|what(?:'s| is) good|why (?:this|it) is better"
    r"|(?:key )?features)\b",
)
"""Matches the title of a list that tells what is good about something."""
_REFERS: Final = re.compile(
    r"\A(?:this|that|it|its|they|these|those|but|so|also|however|therefore|then|otherwise|both)\b",
    re.IGNORECASE,
)
"""Matches the beginning of a sentence that is not understood without the one before."""

_HEAD, _TITLED, _LEAD, _ITEM, _ROW, _COLUMNS, _PLAIN = range(7)
"""The kinds of lines: a heading, a title in bold letters, a line that introduces what follows, a list item, a
row of a table, the names of a table's columns, and all others."""


_TITLE_RANK, _PLAIN_RANK, _ITEM_RANK, _ROW_RANK = 10, 20, 21, 22
"""The ranks of lines that are not indented; each character of indentation adds 2. Headings have 1 to 6."""
_ENDS: Final = (".", ":", ";", "!", "?", "…", ",", ")", "。", "！", "？", "：")
_ABBREVIATIONS: Final = ("e.g.", "i.e.", "vs.", "etc.", "cf.", "approx.", "incl.")


class _Line(msgspec.Struct, frozen=True):
    """A line of prose as it was read."""

    text: str
    kind: int
    rank: int
    """The parent of a line is the last line before it that has a lower rank."""
    is_apart: bool
    """Whether an empty line precedes it."""


class _Node(msgspec.Struct, frozen=True):
    """A sentence, or a line that is not split."""

    text: str
    line: int
    kind: int
    parent: int
    """The place of the node that must be shown too; -1 for none."""
    series: int
    """The numbered list to which the node belongs; -1 for none."""


def clean_lines(text: str) -> list[str]:
    """Return the lines of prose and lists in `text`, without quotations, code blocks, rulers and emphasis. A
    heading ends with a colon; the cells of a table's row are joined. Of a code block, chains of arrows are
    kept. O(length)."""
    return _clean(_read(text))


def condense(text: str, most_chars: int, value: Callable[[str], float] = lambda _: 0.0) -> list[str]:
    """Return lines of `text` in their order, of at most about `most_chars` characters together. `…` stands
    where something is left out that tells something. If no line fits, one is returned. `value` says what the
    names and words in a line are worth, on any scale; the other half of a line's worth is what it says of the
    work. O(length × log length)."""
    read = _read(text)
    lines = _clean(read)
    if not lines:
        return []
    if sum(len(line) + 1 for line in lines) <= most_chars:
        return [_plain(line) for line in lines]
    nodes = _nodes(read)
    worths = _worths(nodes, value)
    choice = _Choice(nodes, worths, most_chars)
    choice.fill()
    return _shown(nodes, worths, choice)


def names_something(line: str) -> bool:
    """Return whether a line names something exactly: in backticks, by a number or by a path."""
    return _NAMES.search(line) is not None


# --- reading ------------------------------------------------------------------------------------------


def _read(text: str) -> list[_Line]:
    """Return the lines of `text` that are no code, quotation or ruler, without emphasis."""
    found: list[_Line] = []
    fence = ""
    is_apart = is_bold = False
    for raw in text.split("\n"):
        bare = raw.strip()
        if fence or bare.startswith(("```", "~~~")):
            if not fence:
                fence = bare[:3]
            elif bare.startswith(fence):
                fence = ""
            elif "→" in bare and _CHAIN.match(bare) is not None:
                rank = _ROW_RANK + 2 * (len(raw) - len(raw.lstrip()))
                found.append(_Line(bare, _ROW, rank, is_apart))
            continue
        if not bare:
            is_apart = True
            continue
        if bare.startswith((">", "＞")):
            continue
        if _RULE.match(bare):
            if "|" in bare and found and found[-1].kind == _ROW and not is_apart:
                found[-1] = _Line(found[-1].text, _COLUMNS, found[-1].rank - 1, found[-1].is_apart)
            continue
        deeper = 2 * (len(raw) - len(raw.lstrip()))
        if (heading := _HEADING.match(raw)) is not None:
            line = f"{raw[heading.end() :].rstrip(' #:')}:"
            kind, rank = _HEAD, len(heading[1])
        elif bare[0] == "|" and _TABLE.match(raw):
            line = " · ".join(cell for part in bare.strip("|").split("|") if (cell := part.strip()))
            kind, rank = _ROW, _ROW_RANK + deeper
        else:
            line = raw.rstrip()
            if _BULLET.match(raw) is not None:
                kind, rank = _ITEM, _ITEM_RANK + deeper
                if is_bold and not is_apart and found[-1].kind == _PLAIN:
                    found[-1] = _Line(found[-1].text, _LEAD, found[-1].rank, found[-1].is_apart)
            elif line.endswith((":", "：", ":**")):
                kind, rank = _LEAD, _PLAIN_RANK + deeper
            elif bare.startswith("**") and _TITLE.match(bare) is not None:
                kind, rank = _TITLED, _TITLE_RANK
            else:
                kind, rank = _PLAIN, _PLAIN_RANK + deeper
        found.append(_Line(_BOLD.sub(r"\1", line) if "**" in line else line, kind, rank, is_apart))
        is_bold = bare.startswith("**")
        is_apart = False
    return found


def _clean(read: Sequence[_Line]) -> list[str]:
    found: list[str] = []
    for one in read:
        if len(one.text) > MAX_LINE_CHARS:
            found.extend(part for part in sentences(one.text) if part.strip())
        else:
            found.append(one.text)
    # A heading without lines under it says nothing.
    return [
        line
        for n, (line, after) in enumerate(zip(found, [*found[1:], ""], strict=False))
        if not n
        or len(line) > HEADING_CHARS
        or not (line.endswith(":") and (not after or (after.endswith(":") and not _BULLET.match(after))))
    ]


def _nodes(read: Sequence[_Line]) -> list[_Node]:
    """Return the sentences of the lines, in order, each with its parent. O(length)."""
    nodes: list[_Node] = []
    above: list[tuple[int, int]] = []
    """The rank and the node of each line that can be a parent of the next one."""
    begun: dict[tuple[int, int], tuple[int, int]] = {}
    """The series and its last number, for each parent and kind of its items."""
    before = _HEAD
    for n, line in enumerate(read):
        rank = line.rank
        if line.kind == _PLAIN and before in (_ITEM, _LEAD) and not line.is_apart:
            rank = max(rank, above[-1][0] + 1)
        elif line.kind == _PLAIN and before in (_ITEM, _ROW) and rank == _PLAIN_RANK:
            # What follows the list of a title is no longer about the title.
            rank = _TITLE_RANK
        while above and above[-1][0] >= rank:
            above.pop()
        parent = above[-1][1] if above else -1
        series = -1
        if (number := _number(line)) > 0:
            last = begun.get((parent, line.kind), (-1, MAX_NUMBER))
            series = last[0] if number > last[1] else n
            begun[parent, line.kind] = (series, number)
        parts = _parts(line)
        lead = len(nodes)
        if line.kind == _LEAD and parts[-1].endswith((":", "：")):
            nodes.extend(_Node(part, n, _PLAIN, parent, -1) for part in parts[:-1])
            lead = len(nodes)
            nodes.append(_Node(parts[-1], n, _LEAD, parent, series))
        else:
            nodes.append(_Node(parts[0], n, line.kind, parent, series))
            base = lead
            for part in parts[1:]:
                needs = lead if line.kind != _PLAIN else base if _REFERS.match(part) else parent
                if needs == parent:
                    base = len(nodes)
                nodes.append(_Node(part, n, _PLAIN, needs, -1))
        if line.kind not in (_PLAIN, _ROW):
            above.append((rank, lead))
        before = line.kind
    return nodes


def _number(line: _Line | _Node) -> int:
    """Return the number of a list item, title or row; 0 if it has none."""
    if line.kind == _ITEM:
        found = _BULLET.match(line.text)
        return 0 if found is None else int(found[2] or 0)
    found = None if line.kind in (_PLAIN, _COLUMNS) else _NUMBERED.match(line.text)
    return 0 if found is None else int(found[1])


def _parts(line: _Line) -> list[str]:
    """Return the sentences of a line; a short one together with the next one. Titles and short lines are not
    split."""
    if line.kind in (_HEAD, _TITLED, _ROW, _COLUMNS) or (
        len(line.text) <= SPLIT_CHARS and line.kind != _LEAD
    ):
        return [line.text]
    marker = _BULLET.match(line.text)
    at = 0 if marker is None else marker.end()
    parts: list[str] = []
    short = line.text[:at]
    for sentence in sentences(line.text[at:]):
        part = f"{short}{sentence}"
        is_short = len(part) - at < prose.MIN_SENTENCE_CHARS and line.kind != _LEAD
        is_open = part.endswith(_ABBREVIATIONS) and len(part) < MAX_LINE_CHARS
        if is_open or (is_short and _POLITE.match(_lower(part)) is None):
            short = f"{part} "
            continue
        parts.append(part)
        short, at = "", 0
    if short.strip():
        if parts:
            parts[-1] = f"{parts[-1]} {short.strip()}"
        else:
            parts.append(short.rstrip())
    return parts


# --- weighing -----------------------------------------------------------------------------------------


def _worths(nodes: Sequence[_Node], value: Callable[[str], float]) -> list[float]:
    """Return what each node is worth, by its words and its place; 0 if it tells nothing alone. O(length)."""
    values = [value(node.text) for node in nodes]
    most = max(values) or 1.0
    tones: list[float] = []
    """What is added to the worth of a node because of the titles above it."""
    parents: set[int] = set()
    worths: list[float] = []
    last = nodes[-1].line
    is_first = True
    for n, node in enumerate(nodes):
        low = _lower(node.text)
        tone = tones[node.parent] if node.parent >= 0 else 0.0
        is_title = node.kind in (_HEAD, _TITLED, _LEAD)
        if is_title:
            tone += OPEN_WORTH * (_OPEN.match(low) is not None)
            tone -= PRAISE_COST * (_PRAISES.search(low) is not None)
        tones.append(tone)
        is_eldest = node.parent not in parents
        parents.add(node.parent)
        is_bare = is_title and node.series < 0 and (node.kind != _LEAD or not _states(low))
        if is_bare or node.kind == _COLUMNS or _tells_nothing(low, is_last=node.line == last):
            worths.append(0.0)
            continue
        is_last = node.line == last
        worth = _says(node.text, low) + QUESTION_WORTH * (is_last and low.endswith("?"))
        if _VERDICT.search(low) is not None:
            worth += VERDICT_WORTH if is_last or n >= END * len(nodes) else 1.0
        if worth > 0:
            worth += PLACE_WORTH * (is_last or (is_first and tone >= 0))
        worth += ELDEST_WORTH * is_eldest + VALUE_SHARE * values[n] / most + tone
        if node.kind == _LEAD and node.series < 0:
            worth -= LEAD_COST
        if node.kind == _ITEM and node.parent >= 0:
            above = nodes[node.parent]
            worth -= SUB_ITEM_COST * (above.kind == _ITEM or above.series >= 0)
        worths.append(max(0.1, worth))
        is_first = False
    return worths


def _lower(text: str) -> str:
    """Return a text in lower case, with typewriter apostrophes."""
    return text.lower().replace("’", "'")


def _says(text: str, low: str) -> float:
    """Return how much a text says about the work. `low` is the text in lower case."""
    worth = 1.5 * prose.decides(text) + 2.5 * prose.reports_failure(text)
    worth += 1.0 * (_OUTCOME.search(low) is not None) + 2.0 * (_CAUSE.search(low) is not None)
    spaces = text.count(" ")
    # A name alone tells less than a sentence about it.
    worth += (0.7 if spaces >= NAME_WORDS else 0.2) * min(3, len(_ANCHORS.findall(text)))
    worth += 0.3 * min(2, len(_NAMES.findall(text))) + 1.0 * (spaces >= SENTENCE_WORDS)
    if "→" in text and _CHAIN.match(text) is not None:
        worth += 3.0
    if ":" in text and _PLACE.search(text) is not None:
        worth += 1.0
    if _LABEL.match(text) is not None:
        worth += 0.7
    return worth


def _states(low: str) -> bool:
    """Return whether a line that ends with a colon also states something."""
    return low.count(" ") >= SENTENCE_WORDS - 2 and (
        _NAMES.search(low) is not None or _CAUSE.search(low) is not None or prose.decides(low[:-1]) > 0
    )


def _tells_nothing(low: str, *, is_last: bool) -> bool:
    """Return whether a sentence is only friendly, or only says what the agent does next. A question at the
    end tells something if it is about one thing."""
    if _POLITE.match(low) is not None:
        return True
    if low.endswith("?"):
        is_about = is_last and (" or " in low or _NAMES.search(low) is not None)
        return _OFFERS.match(low) is not None and not is_about
    return _ANNOUNCES.match(low) is not None and _CAUSE.search(low) is None and not prose.decides(low)


# --- choosing -----------------------------------------------------------------------------------------


class _Choice:
    """Which nodes are shown, and in how many characters."""

    def __init__(self, nodes: Sequence[_Node], worths: Sequence[float], most_chars: int) -> None:
        self._nodes, self._worths, self._room, self._most = nodes, worths, most_chars, most_chars
        self.sizes: dict[int, int] = {}
        """For each chosen node, how many characters are shown."""
        self._full = [min(len(node.text), SHORT_LINE_CHARS) for node in nodes]
        self._series: dict[int, list[int]] = {}
        for n, node in enumerate(nodes):
            if node.series >= 0:
                self._series.setdefault(node.series, []).append(n)
        self.left_out: set[int] = set()
        """Items of numbered lists for which there is no room."""

    def fill(self) -> None:
        """Choose nodes while there is room, those first that are worth most for their length."""
        worths, full = self._worths, self._full

        def rank(n: int) -> tuple[float, int]:
            series = SERIES_WORTH if self._nodes[n].series >= 0 else 1.0
            return -series * worths[n] / (full[n] + 40) ** 0.5, n

        ranked = sorted((n for n in range(len(worths)) if worths[n] > 0), key=rank) or [0]
        waiting = [n for n in ranked if not self._take(n)]
        self._lengthen()
        for n in waiting:
            self._take(n, is_waiting=False)
        if not self.sizes:
            self._add(ranked[:1], SHORT_LINE_CHARS)
        self._lengthen()

    def _take(self, n: int, *, is_waiting: bool = True) -> bool:
        """Choose a node and its parents, if there is room for them. Of a numbered list, choose all items.
        Return whether this is decided. If `is_waiting` is true, a node waits while its parent is
        shortened."""
        path: list[int] = []
        at = n
        while at >= 0 and at not in self.sizes:
            if at in self.left_out:
                return True
            if at == n or self._is_needed(at, path):
                path.append(at)
            at = self._nodes[at].parent
        if is_waiting and at >= 0 and path and self.sizes[at] < self._full[at]:
            return False
        chosen: list[int] = []
        for at in reversed(path):
            series = self._nodes[at].series
            if series < 0:
                chosen.append(at)
                continue
            self._take_series(self._series[series], chosen)
            if at not in self.sizes:
                return True
            if is_waiting and at != n and self.sizes[at] < self._full[at]:
                return False
            chosen = []
        if sum(self._full[at] + GAP_CHARS for at in chosen) <= self._room:
            self._add(chosen, SHORT_LINE_CHARS)
        elif not self.sizes and self._room > self._full[n] // 2 + GAP_CHARS:
            # What tells most is shown, if half of it fits.
            self._add([n], self._room - GAP_CHARS)
        return True

    def _take_series(self, items: Sequence[int], titles: Sequence[int]) -> None:
        """Choose the items of a numbered list after the titles above it, each shortened as far as needed, and
        only the last ones if there is no room for all."""
        room = min(self._room, int(self._most * SERIES_SHARE))
        room -= sum(self._full[at] + GAP_CHARS for at in titles)
        sizes = [self._full[at] + GAP_CHARS for at in items]
        least = sum(min(size, ITEM_CHARS + GAP_CHARS) for size in sizes)
        fitting = len(items) if least <= room else min(len(items), max(0, room // (ITEM_CHARS + GAP_CHARS)))
        if fitting < min(2, len(items)):
            # One of several tells less than what else there is.
            fitting = 0
        self.left_out.update(items[: len(items) - fitting])
        if fitting:
            self._add(titles, SHORT_LINE_CHARS)
            room = min(room, max(least, int(self._most * FIRST_SHARE)))
            self._add(items[-fitting:], _even(sizes[-fitting:], room) - GAP_CHARS)

    def _add(self, chosen: Sequence[int], most: int) -> None:
        for at in chosen:
            self.sizes[at] = min(self._full[at], most)
            self._room -= self.sizes[at] + GAP_CHARS

    def _lengthen(self) -> None:
        """Use the room that is left for what was shortened."""
        short = [at for at, size in self.sizes.items() if size < self._full[at]]
        if short and self._room > 0:
            most = _even([self._full[at] for at in short], self._room + sum(self.sizes[at] for at in short))
            for at in short:
                longer = max(self.sizes[at], min(self._full[at], most))
                self._room -= longer - self.sizes[at]
                self.sizes[at] = longer

    def _is_needed(self, at: int, path: Sequence[int]) -> bool:
        """Return whether the nodes of a path are not understood without the title above them."""
        node, below = self._nodes[at], self._nodes[path[-1]]
        if node.series >= 0 or node.kind not in (_HEAD, _TITLED, _LEAD):
            return True
        # The nearest title tells enough.
        low = _lower(node.text)
        is_nearest = below.kind != _HEAD
        return is_nearest and not (_OPENS.match(low) is not None or _tells_nothing(low, is_last=False))


def _even(sizes: Sequence[int], room: int) -> int:
    """Return the largest size to which `sizes` can be limited so that their sum is at most `room`."""
    left = room
    for n, size in enumerate(ordered := sorted(sizes)):
        share = left // (len(ordered) - n)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


# --- showing ------------------------------------------------------------------------------------------


def _shown(nodes: Sequence[_Node], worths: Sequence[float], choice: _Choice) -> list[str]:
    """Return the chosen nodes as lines, with `…` where something is left out that tells something."""
    shown: list[str] = []
    line = item = -1
    is_gap = False
    cut: dict[int, list[int]] = {}
    for n, node in enumerate(nodes):
        size = choice.sizes.get(n)
        if size is None:
            if n in choice.left_out:
                cut.setdefault(node.series, []).append(_number(node))
            is_gap = is_gap or worths[n] > 0
            continue
        if is_gap and shown and not shown[-1].endswith("…"):
            shown[-1] += " …"
        is_gap = False
        if (numbers := cut.pop(node.series, None)) is not None:
            shown.append(f"{numbers[0]}–{numbers[-1]} …" if len(numbers) > 1 else f"{numbers[0]} …")
        text = _shorten(node.text, size)
        is_below = node.kind == _PLAIN and node.parent >= 0 and nodes[node.parent].line == item
        if node.line == line or is_below:
            shown[-1] += f"{'' if shown[-1].endswith(_ENDS) else '.'} {text.strip()}"
        else:
            shown.append(_plain(text))
            item = node.line if node.kind == _ITEM else -1
        line = node.line
    if is_gap and shown and not shown[-1].endswith("…"):
        shown[-1] += " …"
    return shown


def _shorten(text: str, most: int) -> str:
    """Return a text of at most about `most` characters, cut at the end of a clause or at white space."""
    if len(text) <= most:
        return text
    end = text.rfind(" ", 0, most - 1)
    clause = max(text.rfind(mark, 0, most - 1) for mark in (", ", "; ", ": ", " — ", " – ", " (", ". "))
    if clause > 4 * most // 5:
        end = clause
    if end > 0 and text.count("`", 0, end) % 2 and (tick := text.rfind("`", 0, end)) > most // 2:
        # Half a name says nothing.
        end = tick
    if end < most // 3 and not text.isascii():
        # Some languages are written without white space.
        end = most - 2
    kept = text[: max(0, end)].rstrip(" ,;:—–(")
    return f"{kept} …"


def _plain(line: str) -> str:
    """Return a line with one form of list marker and at most one level of indentation."""
    found = _BULLET.match(line)
    if found is None:
        return line.strip()
    marker = f"{found[2]}." if found[2] else "-"
    return f"{marker} {line[found.end() :].strip()}"
