"""Hand-over texts of the strategy `summarize`: a model writes the summary; compactd checks and repairs it.

Each prompt is a file, and so is each answer: a model behind an API can write the answers, or anybody else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.reading.recordings import Recording
from benchmarks.reading.texts import LARGE
from benchmarks.retention.ours import inputs_of, items_of, text_of, view_after
from compactd.core.extract.facts import FactCache
from compactd.core.planning.plan import CompactRequest, NotCompacted, plan
from compactd.core.summary.answers import ModelReply
from compactd.core.summary.compaction import Draft, compact
from compactd.core.summary.input import SummaryInput
from compactd.core.summary.questions import Ask

SIZES: Final[dict[str, Callable[[Recording], int]]] = {
    "summarize": lambda recording: recording.size,
    "summarize-8k": lambda _: LARGE,
}
"""The target in tokens, by the name of the method."""

Answer = Callable[[Ask, Path], str | None]
"""Takes a question to the model, and the file of its answer; returns the answer, None for none yet."""


def summarize(recording: Recording, tokens: int, folder: Path, answer: Answer) -> str | None:
    """Return the context after a compaction with the strategy `summarize`; None if an answer is missing.

    The prompts are written to `folder`, as `HASH.N.prompt.txt` with the answer in `HASH.N.answer.txt`. A
    recording that is not larger than `tokens` stays as it is.
    """
    items = items_of(recording.past)
    request = CompactRequest(target_tokens=tokens, strategy="summarize", force=True, may_ask_model=True)
    made = plan(inputs_of(items, request))
    if isinstance(made, NotCompacted):
        return text_of(recording.messages)
    running = compact(SummaryInput(plan=made, facts=FactCache()))
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    try:
        asks = next(running)
        while True:
            answers: list[str | None] = []
            for ask in asks:
                prompt = folder / f"{recording.hash}.{number}.prompt.txt"
                prompt.write_text(
                    f"At most {ask.max_tokens} tokens.\n\n{ask.system}\n\n=====\n\n{ask.prompt}"
                )
                answers.append(answer(ask, folder / f"{recording.hash}.{number}.answer.txt"))
                number += 1
            if None in answers:
                return None
            asks = running.send(tuple(ModelReply(text=text or "") for text in answers))
    except StopIteration as end:
        outcome = end.value
        return text_of(view_after(items, outcome)) if isinstance(outcome, Draft) else None
