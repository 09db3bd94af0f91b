"""Show Markdown in the chat. HTML is shown as text, and links are plain text.

Each message is one widget, and Rich lays out its text. textual's own Markdown widget (8.2) makes a widget for
each paragraph and list item, which takes seconds for a session of a few hundred messages or for one long
summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme
from textual.app import RenderResult as Rendered
from textual.content import Content
from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

LAYOUT_INTERVAL_S = 0.05
"""Seconds between two layouts of an answer that is being streamed."""

CODE_THEMES = {True: "github-dark", False: "default"}
"""The pygments theme of code, for a dark background (True) and a light one (False)."""

STYLES = Theme(
    {
        "markdown.code": "bold",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "bold",
        "markdown.h6": "bold",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.block_quote": "italic",
        "markdown.hr": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.list": "none",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)


class _LeftHeading(Heading):
    """A left-aligned heading. Rich centres headings and puts a box around the first level."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    """Indented code on the normal background. Rich would put it into a box."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Syntax(
            str(self.text).rstrip(),
            self.lexer_name,
            theme=self.theme,
            word_wrap=True,
            padding=(0, 2),
            background_color="default",
        )


class _MarkdownText(Markdown):
    elements = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _Code,
        "code_block": _Code,
    }


def _keep_line_ends(tokens: Sequence[Token]) -> None:
    """Change each line end inside a paragraph into a line break. CommonMark shows it as a space, which would
    turn pasted lines into one paragraph.
    """
    for token in tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"


def lay_out(text: str, width: int, *, is_dark: bool) -> Content:
    """Return the Markdown `text` as formatted lines of `width` columns. O(text): about 1 ms per kilobyte."""
    markdown = _MarkdownText("", code_theme=CODE_THEMES[is_dark], hyperlinks=False)
    # Rich's own parser drops HTML tags, and summaries and answers contain some.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.parsed = parser.parse(text)
    _keep_line_ends(markdown.parsed)
    console = Console(file=StringIO(), width=width, color_system="truecolor", theme=STYLES, no_color=False)
    lines = console.render_lines(markdown, console.options.update(width=width), pad=False)
    texts = []
    for line in lines:
        one = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        one.rstrip()
        texts.append(one)
    while texts and not texts[-1].plain:
        texts.pop()
    return Content.from_rich_text(Text("\n").join(texts))


class Prose(Widget):
    """A Markdown text in the conversation. `append` adds to it."""

    DEFAULT_CSS = """
    Prose { width: 1fr; height: auto; margin: 1 0 0 0; text-wrap: nowrap; }
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._text = text
        self._laid_out: tuple[str, int, bool, Content] | None = None
        self._timer: Timer | None = None

    @property
    def text(self) -> str:
        """The whole text, as Markdown."""
        return self._text

    def append(self, more: str) -> None:
        """Append text. It is visible within `LAYOUT_INTERVAL_S` seconds."""
        self._text += more
        if self._timer is None:
            self._timer = self.set_timer(LAYOUT_INTERVAL_S, self._show)

    def clear(self) -> None:
        """Remove the text."""
        self._text = ""
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines that the text has if it is `width` columns wide."""
        return self._content(width).plain.count("\n") + 1

    def render(self) -> Rendered:
        """Return the text as formatted lines."""
        return self._content(self.content_size.width)

    def _content(self, width: int) -> Content:
        key = (self._text, max(1, width), self.app.current_theme.dark)
        if self._laid_out is None or self._laid_out[:3] != key:
            self._laid_out = (*key, lay_out(key[0], key[1], is_dark=key[2]))
        return self._laid_out[3]

    def _show(self) -> None:
        self._timer = None
        self.refresh(layout=True)
