"""Clean the summary that Claude Code's model wrote: only what the context gets of it counts as kept.

Events contain the model's raw answer, with an `<analysis>` that the context does not get. In the transcript,
the program's own sentences are around the summary (2.1.197, 2.1.240 and 2.1.330, run 2026-11). Versions until
2.1.39 at least put the analysis into the context, as text without tags (files seen 2026-11).
"""

from __future__ import annotations

from typing import Final

_ANALYSIS, _ANALYSIS_END = "<analysis>", "</analysis>"
_SUMMARY, _SUMMARY_END = "<summary>", "</summary>"

_PREFACE: Final = "This session is being continued from a previous conversation"
_TITLES: Final = ("Summary:\n", "Analysis:\n")
_ENDINGS: Final = (
    "If you need specific details from before compaction (",
    "Continue the conversation from where it left off",
    "Continue the conversation from where we left",
    "Please continue the conversation from where",
    "The messages after this summary are the most recent messages",
    "Recent messages are preserved verbatim",
)
"""The beginnings of the program's sentences after the summary. Each begins a line."""


def without_analysis(text: str) -> str:
    """Return what the context gets of a model's raw summary: the content of `<summary>` if there is one,
    otherwise everything but the analysis. O(characters).
    """
    begin = text.find(_ANALYSIS)
    end = text.find(_ANALYSIS_END, begin) if begin >= 0 else -1
    if end >= 0:
        text = text[:begin] + text[end + len(_ANALYSIS_END) :]
    begin = text.find(_SUMMARY)
    if begin < 0:
        return text.strip()
    end = text.rfind(_SUMMARY_END)
    begin += len(_SUMMARY)
    return text[begin : end if end >= begin else len(text)].strip()


def without_frame(text: str) -> str:
    """Return the summary in a transcript's row without the program's sentences around it. O(characters)."""
    if not text.startswith(_PREFACE):
        return text
    begins = [at + len(title) for title in _TITLES if (at := text.find("\n" + title)) >= 0]
    if begins:
        text = text[min(begins) + 1 :]
    ends = [at for ending in _ENDINGS if (at := text.find("\n" + ending)) >= 0]
    return text[: min(ends, default=len(text))].strip()
