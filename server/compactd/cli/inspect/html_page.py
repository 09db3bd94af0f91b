"""Show the context window as one web page with interactive plots. The page is self-contained: it loads
nothing from elsewhere.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from compactd.cli.framework.page import make_encodable
from compactd.cli.inspect.anatomy import ContextBlock
from compactd.cli.inspect.markup import escape
from compactd.cli.inspect.picture_data import Picture, kind_of
from compactd.cli.inspect.render import MAX_NAMED_ENTRIES

_HERE = Path(__file__).parent


def page(picture: Picture) -> str:
    """Return the page as HTML. Text of the session can never become markup or script in it. O(entries)."""
    style = page_style()
    script = (_HERE / "page.js").read_text("utf-8")
    after = (
        '<div id="tip" role="tooltip" hidden></div>\n'
        f'<script type="application/json" id="facts">{_facts(picture)}</script>\n'
        f"<script>{script}</script>\n"
    )
    return document(f"Context of {picture.title}", _body(picture), style, script=script, after=after)


def page_style() -> str:
    """Return the style sheet of compactd's pages."""
    return (_HERE / "page.css").read_text("utf-8")


def document(title: str, main: str, style: str, *, script: str = "", after: str = "") -> str:
    """Return a self-contained HTML document. Its policy allows no other style and script than these, and
    nothing from elsewhere.

    `main` and `after` (what follows it) are HTML; `title` is text. `script` must be an element of `after`.
    """
    scripts = f"script-src '{_hash(script)}'; " if script else ""
    policy = f"default-src 'none'; style-src '{_hash(style)}'; {scripts}base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
{main}
</main>
{after}</body>
</html>
"""


def _hash(text: str) -> str:
    """Return the hash of an inline block in the form that Content Security Policy 3 requires to allow it."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _facts(picture: Picture) -> str:
    """Return the data as JSON that cannot end the script element or begin another."""
    entries = [
        {**msgspec.to_builtins(entry), "colour": kind_of(entry), "what": make_encodable(entry.what)}
        for entry in picture.entries
    ]
    data = msgspec.json.encode({**msgspec.to_builtins(picture), "entries": entries}).decode(
        "utf-8", "replace"
    )
    for sign in "<>&\u2028\u2029":
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return data


def _body(picture: Picture) -> str:
    source = "the provider's reports" if picture.measured else "estimated"
    return "\n".join(
        (
            f"<header><h1>{escape(picture.title)}</h1>"
            f'<div class="percent">{escape(picture.percent)}</div></header>',
            f'<p class="about">{escape(picture.about)}</p>',
            section(
                "The context window",
                f"{picture.used:,} tokens",
                f'<div class="plot" id="bar"></div>{_legend(picture)}',
            ),
            f"<section>{_figures(picture)}</section>",
            section("Growth", f"tokens after each answer, {source}", '<div class="plot" id="growth"></div>'),
            section("Entries", "by size", f'<div class="plot" id="entries"></div>{_tables(picture)}'),
            section("Cost", "of all requests so far", '<div class="plot" id="spent"></div>')
            if picture.spent
            else '<section hidden><div id="spent"></div></section>',
            section("A compaction now", "", html_list(picture.preview)),
            section("Notes", "about the file", html_list(picture.warnings)) if picture.warnings else "",
        )
    )


def section(title: str, small: str, body: str) -> str:
    """Return a section with a title and a text next to it. `title` and `body` are HTML, `small` is text."""
    return f"<section><h2>{title}{f'<small>{escape(small)}</small>' if small else ''}</h2>{body}</section>"


def html_list(lines: Iterable[str]) -> str:
    """Return a list of texts."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _legend(picture: Picture) -> str:
    items = (
        f'<li><i class="{part.kind}"></i>{escape(part.name)} {escape(part.share)}</li>'
        for part in picture.parts
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _figures(picture: Picture) -> str:
    rows = (
        f'<tr><th scope="row">{escape(figure.label)}</th>'
        f'<td class="number {figure.look}">{escape(figure.number)}</td>'
        f'<td class="{figure.look}">{escape(figure.text)}</td></tr>'
        for figure in picture.figures
    )
    return f'<div class="scroll"><table class="figures">{"".join(rows)}</table></div>'


def _tables(picture: Picture) -> str:
    """Return a table of the ten largest entries, and a collapsed table of the others."""
    hint = '<p class="hint">Tab reaches the plots, arrow keys go through them.</p>'
    first, others = picture.entries[:MAX_NAMED_ENTRIES], picture.entries[MAX_NAMED_ENTRIES:]
    more = ""
    if others:
        more = f"<details><summary>{len(others):,} more</summary>{_table(others)}</details>"
    return f"{hint}{_table(first)}{more}" if first else hint


def _table(entries: tuple[ContextBlock, ...]) -> str:
    head = (
        '<tr><th scope="col">kind</th><th class="number" scope="col">tokens</th>'
        '<th class="number" scope="col">turn</th><th class="what" scope="col">what</th></tr>'
    )
    return f'<div class="scroll"><table>{head}{"".join(_row(entry) for entry in entries)}</table></div>'


def _row(entry: ContextBlock) -> str:
    what = f"{entry.what} ({entry.note})" if entry.note else entry.what
    return (
        f'<tr><td>{escape(entry.kind)}</td><td class="number">{entry.tokens:,}</td>'
        f'<td class="number">{f"{entry.turn:,}" if entry.turn else "-"}</td>'
        f'<td class="what{" bad" if entry.failed else ""}">{escape(what)}</td></tr>'
    )
