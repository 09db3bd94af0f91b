"""The context window as a self-contained SVG picture for light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from compactd.cli.inspect.bar import CELLS
from compactd.cli.inspect.growth import GrowthPoint
from compactd.cli.inspect.markup import clip_to, escape, short
from compactd.cli.inspect.picture_data import Picture, PicturePart, kind_of
from compactd.cli.inspect.render import MAX_NAMED_ENTRIES

WIDTH = 840
EDGE = 28
INNER = WIDTH - 2 * EDGE
CHAR = 7.25
"""The largest width of a 12-pixel character in common monospace fonts (0.6 of its height)."""
LINE = 20
CELL = INNER / CELLS
CURVE = 96
"""The height of the growth curve."""

_STYLE = """\
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2733}
.title{font-weight:600;font-size:15px}.big{font-weight:600;font-size:22px}.soft{fill:#5a6675}
.due{fill:#8a5a00}.bad{fill:#b3261e}.page{fill:#fff;stroke:#d5dbe3}.free{fill:#e6eaf0}.line{stroke:#d5dbe3}
.mark{stroke:#1f2733}.curve{fill:none;stroke:#3b6fd4;stroke-width:1.5}.area{fill:#3b6fd4;fill-opacity:.14}
.cut{stroke:#8250c8;stroke-dasharray:3 3}.fixed{fill:#5b6b80}.results{fill:#3b6fd4}.calls{fill:#0b7a72}
.summary{fill:#8250c8}.user{fill:#4f7a17}.text{fill:#a84a86}
@media (prefers-color-scheme:dark){text{fill:#dfe5ee}.soft{fill:#97a3b4}.due{fill:#e3b341}.bad{fill:#ff8a80}
.page{fill:#0f141b;stroke:#2b3440}.free{fill:#252e3a}.line{stroke:#2b3440}.mark{stroke:#dfe5ee}
.curve{stroke:#6f9df2}.area{fill:#6f9df2}.cut{stroke:#b48ef0}.fixed{fill:#94a3b8}.results{fill:#6f9df2}
.calls{fill:#39c2b6}.summary{fill:#b48ef0}.user{fill:#9cc957}.text{fill:#e08fc0}}
"""


def svg(picture: Picture) -> str:
    """Return the picture as SVG. All text of the session is escaped. The height depends on the contents."""
    body: list[str] = []
    y = _head(body, picture)
    y = _bar(body, picture, y)
    y = _figures(body, picture, y)
    y = _largest(body, picture, y)
    y = _growth(body, picture, y)
    body.append(_text(EDGE, y, picture.preview[0], "soft", most=_chars(INNER)))
    height = y + EDGE
    told = f"{picture.about}. {picture.used:,} tokens in the context. {picture.preview[0]}."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">'
        f'<title id="t">Context of {escape(picture.title)}</title><desc id="d">{escape(told)}</desc>'
        f"<style>{_STYLE}</style>"
        f'<rect class="page" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="10"/>'
        f"{''.join(body)}</svg>\n"
    )


def _text(x: float, y: float, text: str, look: str = "", *, most: int = 200, anchor: str = "") -> str:
    about = f' class="{look}"' if look else ""
    about += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{about}>{escape(clip_to(text, most))}</text>'


def _chars(width: float) -> int:
    return int(width / CHAR)


def _head(body: list[str], picture: Picture) -> float:
    percent = picture.percent or f"{short(picture.used)} tokens"
    body.append(_text(EDGE, 42, picture.title, "title", most=60))
    body.append(_text(EDGE, 62, picture.about, "soft", most=_chars(INNER - 110)))
    body.append(_text(WIDTH - EDGE, 46, percent, "big", anchor="end"))
    return 78.0


def _bar(body: list[str], picture: Picture, y: float) -> float:
    """Append the bar to `body`: one cell per percent of the window, and below it the threshold and the
    legend. Return the y coordinate below them.
    """
    whole = max(1, picture.window or 0, picture.used)
    cells = _cells(picture.parts, whole)
    for place, name in enumerate([*cells, *["free"] * (CELLS - len(cells))]):
        body.append(
            f'<rect class="{name}" x="{EDGE + place * CELL:.2f}" y="{y:g}" width="{CELL - 1.2:.2f}" '
            'height="24" rx="1.5"/>'
        )
    y += 24
    if picture.threshold is not None and picture.threshold <= whole:
        share = picture.threshold / whole
        x = EDGE + INNER * share - 0.6
        body.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 29:g}" y2="{y + 5:g}"/>')
        words = f"compactd compacts at {100 * share:.0f} %"
        is_right = x + len(words) * CHAR > WIDTH - EDGE
        body.append(_text(x, y + 17, words, "soft", anchor="end" if is_right else ""))
    y += 40
    x = float(EDGE)
    for part in picture.parts:
        words = f"{part.name} {part.share}"
        if x + 18 + len(words) * CHAR > WIDTH - EDGE:
            x, y = float(EDGE), y + LINE
        body.append(f'<rect class="{part.kind}" x="{x:g}" y="{y - 9:g}" width="10" height="10" rx="2"/>')
        body.append(_text(x + 15, y, words))
        x += 15 + len(words) * CHAR + 18
    return y + 34


def _cells(parts: Sequence[PicturePart], whole: int) -> list[str]:
    cells: list[str] = []
    done = 0
    for part in parts:
        done += part.tokens
        cells += [part.kind] * (min(CELLS, round(CELLS * done / whole)) - len(cells))
    return cells


def _figures(body: list[str], picture: Picture, y: float) -> float:
    number = EDGE + 84 + 9 * CHAR
    for figure in picture.figures:
        body.append(_text(EDGE, y, figure.label, "soft"))
        body.append(_text(number, y, figure.number, figure.look, anchor="end"))
        body.append(_text(number + 16, y, figure.text, figure.look, most=_chars(WIDTH - EDGE - number - 16)))
        y += LINE
    return y + 16


def _largest(body: list[str], picture: Picture, y: float) -> float:
    """Append the largest entries to `body`, each with a bar that is relative to the largest. Return the y
    coordinate below them.
    """
    entries = picture.entries[:MAX_NAMED_ENTRIES]
    if not entries:
        return y
    body.append(_text(EDGE, y, "largest entries", "soft"))
    body.append(_text(EDGE + 340, y, "tokens", "soft", anchor="end"))
    body.append(_text(EDGE + 390, y, "turn", "soft", anchor="end"))
    most = entries[0].tokens
    for entry in entries:
        y += LINE
        length = max(2.0, 165 * entry.tokens / most)
        body.append(_text(EDGE, y, entry.kind))
        body.append(
            f'<rect class="{kind_of(entry)}" x="{EDGE + 105}" y="{y - 10:g}" width="{length:.1f}" '
            'height="11" rx="2"/>'
        )
        body.append(_text(EDGE + 340, y, f"{entry.tokens:,}", anchor="end"))
        body.append(_text(EDGE + 390, y, f"{entry.turn:,}" if entry.turn else "-", anchor="end"))
        what = f"{entry.what}   {entry.note}" if entry.note else entry.what
        body.append(_text(EDGE + 405, y, what, "bad" if entry.failed else "", most=_chars(INNER - 405)))
    return y + 36


def _growth(body: list[str], picture: Picture, y: float) -> float:
    points = picture.points
    if len(points) < 2:
        return y
    highest = max(1, *(point.tokens for point in points))
    turns = sorted(set(picture.compactions))
    after = f", compactions at turn {', '.join(f'{turn:,}' for turn in turns)}" if turns else ""
    how = "measured" if picture.measured else "estimated"
    body.append(_text(EDGE, y, f"growth, {how}, up to {highest:,} tokens{after}", "soft", most=_chars(INNER)))
    top, bottom = y + 14, y + 14 + CURVE
    step = INNER / (len(points) - 1)

    def at(place: int, point: GrowthPoint) -> str:
        return f"{EDGE + place * step:.1f},{bottom - CURVE * point.tokens / highest:.1f}"

    for run in _runs(points):
        spots = [at(place, point) for place, point in run]
        first, last = EDGE + run[0][0] * step, EDGE + run[-1][0] * step
        body.append(
            f'<path class="area" d="M{first:.1f},{bottom:g}L{"L".join(spots)}L{last:.1f},{bottom:g}Z"/>'
        )
        body.append(f'<polyline class="curve" points="{" ".join(spots)}"/>')
        if run[0][0]:
            x = first - step / 2
            body.append(f'<line class="cut" x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{bottom:g}"/>')
    body.append(f'<line class="line" x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{bottom:g}" y2="{bottom:g}"/>')
    body.append(_text(EDGE, bottom + 16, f"turn {points[0].turn:,}", "soft"))
    body.append(_text(WIDTH - EDGE, bottom + 16, f"turn {points[-1].turn:,}", "soft", anchor="end"))
    return bottom + 44


def _runs(points: Sequence[GrowthPoint]) -> Iterator[list[tuple[int, GrowthPoint]]]:
    """Split `points` at the compactions. Yield each part as a list of (index in `points`, point)."""
    for _, run in groupby(enumerate(points), key=lambda one: one[1].since):
        yield list(run)
