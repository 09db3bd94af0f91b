"""The text of the first screen of a chat without messages: what the chat is, and what to try."""

from __future__ import annotations

from collections.abc import Sequence

from compactd.cli.framework.page import one_line

ABOUT = "Stores this conversation, and compacts it before the context window is full."
ECHO = "Echo mode: no model is asked. Every prompt is answered with itself."
NAME_ONE = "/model PROVIDER/ID names one, for example /model anthropic/claude-sonnet-4-5"
TRY = (
    ("hello", "any text is a prompt"),
    ("/context", "shows what fills the context window"),
    ("/compact --keep 1", "compacts what was said so far; /undo takes it back"),
    ("?", "shows all commands and keys"),
)


def mode_lines(model: str | None, *, is_echo: bool) -> Sequence[str]:
    """Return what answers the prompts: the echo, a model, or nothing yet and how to name a model."""
    if is_echo:
        return (ECHO, "With a model: compactd chat --model anthropic/claude-sonnet-4-5")
    if model is None:
        return ("No model is set.", NAME_ONE)
    return (f"Your prompts go to {one_line(model)}.",)


def welcome_texts(model: str | None, *, is_echo: bool) -> Sequence[str]:
    """Return the text of the first screen for different heights, from the longest to the shortest."""
    mode = mode_lines(model, is_echo=is_echo)
    tries = "\n".join(f"  {typed:<19} {does}" for typed, does in TRY)
    name = "compactd chat"
    return (
        "\n".join((name, "", ABOUT, "", *mode, "", "Try", tries)),
        "\n".join((name, *mode, tries)),
        "\n".join((*mode, "? shows all commands and keys")),
        "\n".join((mode[0], "? shows all keys")),
        "? shows all keys",
    )


def fitting_text(texts: Sequence[str], columns: int, lines: int) -> str:
    """Return the first of `texts` that fits into a place of this size; the last one if none does."""
    from rich.cells import cell_len

    for text in texts:
        needed = sum(max(1, -(-cell_len(line) // max(1, columns))) for line in text.split("\n"))
        if needed < lines:
            return text
    return texts[-1]
