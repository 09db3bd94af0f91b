"""Reduce the outputs of one tool call, keep the originals in the mirror's journal, and note what the context
shows now. Loading this module loads the engine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.history.entries import Reduced, ReductionObserved
from compactd.core.reduce.output import Level, Reduction, ToolOutput
from compactd.core.reduce.reduce import reduce_output
from compactd.core.reduce.shown import ShownLines
from compactd.core.work.file_operations import PATH_ARGUMENTS
from compactd.integrations.hooks.output_journal import OutputJournal
from compactd.integrations.hooks.output_reduction import MIN_CHARS, is_wanted
from compactd.integrations.hooks.reduced_notes import OutputNote, text_key
from compactd.integrations.hooks.shown_index import ShownIndex, ShownText
from compactd.integrations.hooks.tool_outputs import OutputPart, ToolUse, renumbered

ESTIMATOR: Final = "chars4"
LOOKALIKES: Final = "lookalikes"
"""The rule that changes what looks like a mark in an output."""

_encode = msgspec.json.Encoder().encode


class CallReduction:
    """The outputs of one call, while they are reduced."""

    def __init__(
        self, use: ToolUse, index: ShownIndex, journal: OutputJournal, level: Level, *, observes: bool
    ) -> None:
        """`observes`: only count what a reduction would save."""
        self._use = use
        self._index = index
        self._journal = journal
        self._level: Level = level
        self._observes = observes
        self._arguments: dict[str, object] = msgspec.json.decode(use.arguments)
        self._path = {
            name: value for name in PATH_ARGUMENTS if isinstance(value := self._arguments.get(name), str)
        }
        self._entries: list[Reduced] = []
        self._observed: list[ReductionObserved] = []
        self._named: list[tuple[ShownText, str]] = []
        """Earlier texts that got an entry, because a mark names it."""
        self._shown: list[tuple[ShownText, str]] = []
        """What the context shows of this call's outputs."""
        self.has_marks = False
        """Whether a mark is in one of the reduced texts."""

    def reduce(self) -> dict[int | None, str]:
        """Reduce the outputs, write the originals, and note what the context shows now. Return the reduced
        texts by part; those that stay are left out. Raise `CannotKeep`, `OSError`. O(length).
        """
        texts: dict[int | None, str] = {}
        for part in self._use.parts:
            text = self._reduce(part) if is_wanted(part) else None
            if text is not None:
                texts[part.part] = text
            elif len(part.text) >= MIN_CHARS:
                self._note_shown(part, part.text, "", ())
        self._write()
        for one, entry_id in self._named:
            self._index.name(one, entry_id)
        for one, text in self._shown:
            self._index.add(one, text)
        return texts

    def _reduce(self, part: OutputPart) -> str | None:
        """Return the text to show; None if the output stays."""
        output = ToolOutput(self._use.name, self._arguments, part.text)
        made, sources = self._reduced(output, self._journal.next_number + len(self._entries))
        if not made.rules:
            return None
        text = made.text
        if self._use.name == "Read":
            text = renumbered(text, int(part.text.partition("\t")[0]))
        before, after = _tokens(part.text), _tokens(text)
        if after >= before and LOOKALIKES not in made.rules:
            return None
        if self._observes:
            self._note_observed(made.rules, before, after)
            return None
        self._keep(part, text, made, sources)
        return text

    def _reduced(self, output: ToolOutput, first: int) -> tuple[Reduction, list[tuple[ShownText, str]]]:
        """Return (the reduction of an output whose entry has the number `first`, the earlier texts that its
        marks name and that have no entry yet).

        These get the entries after it. Which of them the marks name is only known afterwards, so the output
        is reduced again without the others if their numbers would leave a gap.
        """
        candidates = self._index.sharing(output.text)
        while True:
            lines = ShownLines()
            nameless: list[tuple[ShownText, str]] = []
            for one, text in candidates:
                entry_id = one.entry_id or next((name for other, name in self._named if other == one), "")
                if not entry_id:
                    nameless.append((one, text))
                    entry_id = f"e{first + len(nameless)}"
                lines.add(entry_id, ToolOutput(one.name, one.path, text))
            made = reduce_output(output, lines, f"e{first}", self._level)
            used = [f"e{first + at}" in made.entry_ids for at in range(1, len(nameless) + 1)]
            count = sum(used)
            if all(used[:count]):
                return made, nameless[:count]
            unused = [one for (one, _), is_used in zip(nameless, used, strict=True) if not is_used]
            candidates = [row for row in candidates if row[0] not in unused]

    def _note_observed(self, rules: Sequence[str], before: int, after: int) -> None:
        self._observed.append(
            ReductionObserved(
                at=time.time(),
                name=self._use.name,
                tokens=(before, ESTIMATOR),
                tokens_shown=after,
                rules=tuple(rules),
            )
        )

    def _keep(
        self, part: OutputPart, text: str, made: Reduction, sources: Sequence[tuple[ShownText, str]]
    ) -> None:
        """Keep the original of a reduced output, and the earlier texts that its marks name."""
        use, number = self._use, self._journal.next_number + len(self._entries)
        result = ToolOutput(use.name, self._arguments, part.text)
        self._entries.append(
            replace(
                self._entry(number, use.call_id, use.arguments, result, text),
                rules=made.rules,
                refers=made.entry_ids,
            )
        )
        self._note_shown(part, text, f"e{number}", made.rules)
        for at, (one, whole) in enumerate(sources, number + 1):
            arguments, result = Raw(_encode(one.path)), ToolOutput(one.name, one.path, whole)
            self._entries.append(self._entry(at, one.call_id, arguments, result, whole))
            self._named.append((one, f"e{at}"))

    def _entry(self, number: int, call_id: str, arguments: Raw, output: ToolOutput, shown: str) -> Reduced:
        block = {"type": "tool_result", "call_id": call_id, "content": output.text, "name": output.name}
        return Reduced(
            id=f"e{number}",
            at=time.time(),
            tokens=(_tokens(output.text), ESTIMATOR),
            name=output.name,
            message=Raw(_encode({"role": "tool", "content": [block]})),
            arguments=arguments,
            shown=shown,
            tokens_shown=_tokens(shown),
            rules=(),
            level=self._level,
            parent=self._journal.parent,
            call_id=call_id,
        )

    def _note_shown(self, part: OutputPart, text: str, entry_id: str, rules: Sequence[str]) -> None:
        has_marks = any(rule != LOOKALIKES for rule in rules)
        self.has_marks |= has_marks
        whose = self._use.call_id, part.part, entry_id, self._use.name, self._path
        self._shown.append((ShownText(*whose, bool(entry_id), has_marks, 0, 0, b""), text))

    def _write(self) -> None:
        if not self._entries and not self._observed:
            return
        notes: dict[str, list[OutputNote]] = {}
        for entry in self._entries:
            original = msgspec.json.decode(entry.message)["content"][0]["content"]
            note = OutputNote(entry.id, text_key(entry.shown), text_key(original))
            notes.setdefault(entry.call_id or "", []).append(note)
        self._journal.write(self._entries, self._observed, notes)


def _tokens(text: str) -> int:
    """Return the estimate `ESTIMATOR` of a text, as `core.tokens.counting.Chars4` counts."""
    return (len(text) + 3) // 4
