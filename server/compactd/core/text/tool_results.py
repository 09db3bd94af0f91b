"""Convert a tool result to text."""

from __future__ import annotations

from compactd.protocol.messages import Document, Image, Text, ToolResult


def text_of_result(result: ToolResult) -> str:
    """Return the text of a tool result. A block that is not text becomes its type or title in brackets,
    such as `[image/png]`."""
    if isinstance(result.content, str):
        return result.content
    parts: list[str] = []
    for block in result.content:
        match block:
            case Text(text=text):
                parts.append(text)
            case Image(media_type=media_type):
                parts.append(f"[{media_type}]")
            case Document(title=title, media_type=media_type, text=text):
                parts.append(text if text is not None else f"[{title or media_type}]")
            case _:
                parts.append(f"[{type(block).__name__.lower()}]")
    return "\n".join(parts)
