"""The dark and the light theme of the chat. Colour is used only for what needs attention."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

DARK = Theme(
    name="compactd-dark",
    primary="#7aa2c8",
    secondary="#7aa2c8",
    accent="#7aa2c8",
    warning="#d7a84a",
    error="#e06c6c",
    success="#86b37a",
    foreground="#d8d8d8",
    background="#151719",
    surface="#1c1f22",
    panel="#2a2e33",
    dark=True,
    variables={"quiet": "#4a5058"},
)
LIGHT = Theme(
    name="compactd-light",
    primary="#2f5f8f",
    secondary="#2f5f8f",
    accent="#2f5f8f",
    warning="#8a5a00",
    error="#b3261e",
    success="#3f6f33",
    foreground="#1f2328",
    background="#fbfbfa",
    surface="#f0f0ee",
    panel="#d4d6d8",
    dark=False,
    variables={"quiet": "#b4b8bc"},
)


def theme_name(chosen: str | None, environ: Mapping[str, str]) -> str:
    """Return the name of a theme: the chosen one (`dark` or `light`). Without a choice, it is the light one
    if the terminal's background is known to be light, otherwise the dark one.

    The terminal's background is read from `COLORFGBG`, which rxvt and its successors set:
    foreground;background, where 7 and 15 are white (rxvt(7), "COLORFGBG").
    """
    if chosen is None:
        ground = environ.get("COLORFGBG", "").rpartition(";")[2]
        chosen = "light" if ground in ("7", "15") else "dark"
    return LIGHT.name if chosen == "light" else DARK.name
