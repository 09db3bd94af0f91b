"""`compactd watch FILE`: shows live, in one line, how full a running agent's context is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.agent_files.choose import AGENT, PICK, Choice, choose_file, current_folder, newest_of, tell
from compactd.cli.agent_files.places import AGENTS, TITLES, find_files
from compactd.cli.framework.command import Argument, Command, Flag
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, CommandError
from compactd.cli.framework.load_file import check_path, recorded_with_lookup
from compactd.cli.framework.model_facts import ModelFacts, ask_model_facts
from compactd.cli.framework.options import MODEL, WINDOW
from compactd.cli.framework.page import (
    STYLES,
    Look,
    Page,
    make_encodable,
    one_line,
    plural,
    shorten_to_columns,
)
from compactd.cli.inspect.markup import short
from compactd.cli.watch.watched_session import ContextReading, Unreadable, Watched
from compactd.client import Client
from compactd.core.budget.recorded_window import NOTHING_RECORDED, Evidence
from compactd.core.text.escape_invisible import visible_json

ABOUT = """\
Shows how full the context of a running agent is, in one line that is updated when the
session file changes, or once (--once), for a status line. The file may grow, shrink,
be replaced, or not exist yet. Changes nothing and sends nothing anywhere.

  ctx 41 % · 82k/200k · compacts in ~34 turns

A question mark means that the window is a guess, as in `ctx ~63 % · 81k/128k?`. `~200k`
means that it was estimated from the file. `compacts in ~34 turns` is the number of
turns until compactd would compact, if they are as large as the turns so far. The
agent's own limit may differ. Without FILE, it follows the newest session of this
folder's agents, also if a newer one begins meanwhile.
"""

POLL_S = 0.5
"""Seconds between two looks at the file; each is one `stat`."""

SEARCHES = 10
"""With `--agent`: how many looks at the file there are per search for a newer session."""

SOON = 3
"""The line is highlighted if a compaction is due in at most this many turns."""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    file: str | None
    pick: bool
    agent: str | None
    once: bool
    model: str | None
    window: int | None


def run(options: Options, page: Page) -> int:
    """Show the session's status as one line: once, or kept up to date until Ctrl-C."""
    if options.file is not None or options.pick or options.once:
        choice = choose_file(options.file, pick=options.pick, agent=options.agent, page=page)
        options = replace(options, file=choice.name)
    known = _LimitsCache(options.model, options.window)
    if options.once:
        return _show_once(Path(options.file or ""), known, page)
    out = _JsonLines() if page.is_json else _Line(page) if page.is_drawn else _Lines()
    try:
        _follow(options, known, out, page)
    finally:
        out.end()


def _choose(options: Options) -> Choice | None:
    """Return the file to watch; None if no agent has written one yet."""
    if options.file is not None:
        return Choice(name=options.file)
    agents = AGENTS if options.agent is None else (options.agent,)
    files = [file for file in find_files(os.environ, agents) if not file.is_subagent]
    return newest_of(files, current_folder()) if files else None


def _show_once(file: Path, known: _LimitsCache, page: Page) -> int:
    match Watched(file, known.limits).look():
        case ContextReading() as reading:
            if page.is_json:
                page.json(reading_facts(reading))
            elif page.is_drawn:
                text, look = fit_line(reading, page.width)
                page.line(text, look)
            else:
                page.line(line(reading))
            return DONE
        case Unreadable(reason=reason):
            check_path(str(file))
            raise CommandError(f"cannot watch {one_line(str(file))}: {reason}.")
        case None:
            return NOTHING_TO_DO


def _follow(options: Options, known: _LimitsCache, out: _Lines | _Line, page: Page) -> NoReturn:
    """Read the session file again and again and print what changed, until Ctrl-C or until nobody reads the
    output. Never returns."""
    watched: Watched | None = None
    has_shown = False
    looks = 0
    while True:
        if watched is None or (options.file is None and looks % SEARCHES == 0):
            choice = _choose(options)
            if choice is None and watched is None:
                out.show_missing(
                    f"no session of {TITLES[options.agent] if options.agent else 'an agent'} yet"
                )
            elif choice is not None and (watched is None or Path(choice.name) != watched.path):
                tell(choice, page)
                watched = Watched(Path(choice.name), known.limits)
        looks += 1
        if watched is not None:
            match watched.look():
                case ContextReading() as reading:
                    out.show(reading)
                    has_shown = True
                case Unreadable(reason=reason, is_gone=is_gone):
                    # A JSON document is incomplete for a moment while it is being written.
                    if is_gone or not has_shown:
                        out.show_missing(f"{one_line(str(watched.path))}: {reason}")
                        has_shown = False
                case None:
                    pass
        time.sleep(POLL_S)


class _LimitsCache:
    """What the daemon knows about models. Each model is looked up once."""

    def __init__(self, model: str | None, window: int | None) -> None:
        self._model = model
        self._window = window
        self._answers: dict[tuple[str | None, int | None], ModelFacts] = {}

    def limits(self, model: str | None, evidence: Sequence[Evidence], accepted: Sequence[int]) -> ModelFacts:
        """Return the limits of the model given on the command line, otherwise of `model`.

        The window is the one given on the command line, otherwise the one that the file shows (`evidence`,
        `accepted`), otherwise the model's registered one. A daemon is started only for a model and window
        that were not looked up before.
        """
        name = self._model or model
        recorded = NOTHING_RECORDED
        if self._window is None and name == model and (evidence or accepted):
            recorded = recorded_with_lookup(self._answers[name, None].lookup, evidence, accepted)
        window = self._window or recorded.window
        if (name, window) not in self._answers:
            with Client() as client:
                started = client.session_start(persist=False, model=name, context_window=window)
                self._answers[name, window] = ask_model_facts(client, started.session_id)
        return replace(self._answers[name, window], recorded=recorded)


# --- output -------------------------------------------------------------------------------------------


def line(reading: ContextReading) -> str:
    """Return the line, such as `ctx 41 % · 82k/200k · compacts in ~34 turns`."""
    return " · ".join(_parts(reading))


def _parts(reading: ContextReading) -> list[str]:
    limits, percent = reading.limits, reading.percent
    is_estimated = reading.source == "estimated"
    used = f"{'~' if is_estimated else ''}{short(reading.used)}"
    if percent is None or limits.window is None:
        return [f"ctx {used}"]
    about = "~" if is_estimated or limits.is_guess or limits.is_estimate else ""
    window = f"{'~' if limits.is_estimate else ''}{short(limits.window)}{'?' if limits.is_guess else ''}"
    parts = [f"ctx {about}{percent:.0f} %", f"{used}/{window}"]
    if reading.used > limits.window:
        fits = "the next request does not fit"
        parts.append(f"if that guess is right, {fits}" if limits.is_guess else f"over: {fits}")
    elif reading.is_due:
        parts.append("compacts before the next request")
    elif reading.forecast is not None:
        parts.append(f"compacts in ~{plural(reading.forecast.steps, reading.forecast.unit)}")
    return parts


def look_of(reading: ContextReading) -> Look:
    """Return the line's colour: red if the context is larger than the window; yellow if a compaction is due
    now or soon, or if the window is a guess.
    """
    limits, soon = reading.limits, reading.forecast
    if limits.window is not None and reading.used > limits.window:
        return "due" if limits.is_guess else "bad"
    is_soon = soon is not None and soon.unit == "turn" and soon.steps <= SOON
    return "due" if reading.is_due or is_soon or limits.is_guess else ""


def fit_line(reading: ContextReading, columns: int) -> tuple[str, Look]:
    """Return the line, without its last parts if they do not fit into `columns` columns, and its colour."""
    parts = _parts(reading)
    while len(parts) > 1 and len(" · ".join(parts)) > columns:
        parts.pop()
    return " · ".join(parts)[: max(1, columns)], look_of(reading)


def reading_facts(reading: ContextReading) -> dict[str, object]:
    """Return the reading for `--json`. Sizes are in tokens."""
    limits, percent = reading.limits, reading.percent
    return {
        "file": make_encodable(str(reading.file)),
        "format": reading.format,
        "model": limits.state.model,
        "used": reading.used,
        "source": reading.source,
        "window": limits.window,
        "window_confidence": limits.confidence,
        "window_source": limits.window_source or "",
        "percent": None if percent is None else round(percent, 2),
        "threshold": limits.threshold,
        "forecast": reading.forecast,
        "compactions": reading.compactions,
        "line": line(reading),
    }


class _Lines:
    """An output that prints the line whenever it has changed. If there is no reading, it says why on standard
    error, once.
    """

    def __init__(self) -> None:
        self._last = ""
        self._missing = ""

    def show(self, reading: ContextReading) -> None:
        self._missing = ""
        self._write(self._text(reading))

    def _text(self, reading: ContextReading) -> str:
        return line(reading)

    def _write(self, text: str) -> None:
        if text != self._last:
            self._last = text
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    def show_missing(self, why: str) -> None:
        if why != self._missing:
            self._missing, self._last = why, ""
            sys.stderr.write(f"waiting: {why}\n")
            sys.stderr.flush()

    def end(self) -> None:
        """Do nothing: each line was written completely."""


class _JsonLines(_Lines):
    """An output that prints each reading as one line of JSON."""

    def _text(self, reading: ContextReading) -> str:
        return visible_json(msgspec.json.encode(reading_facts(reading)).decode())

    def show_missing(self, why: str) -> None:
        self._write(visible_json(msgspec.json.encode({"waiting": make_encodable(why)}).decode()))


class _Line:
    """An output that redraws one line of a terminal when the line has changed."""

    def __init__(self, page: Page) -> None:
        from rich.live import Live

        self._page = page
        self._last: tuple[str, Look] | None = None
        self._live = Live(console=page.console, auto_refresh=False)
        self._live.start()

    def show(self, reading: ContextReading) -> None:
        self._draw(fit_line(reading, self._columns()))

    def show_missing(self, why: str) -> None:
        self._draw((shorten_to_columns(f"ctx – · waiting: {why}", self._columns()), ""))

    def _columns(self) -> int:
        """Return the current number of columns; the window may have been made narrower."""
        return min(self._page.width, get_terminal_size().columns)

    def _draw(self, seen: tuple[str, Look]) -> None:
        from rich.text import Text

        if seen != self._last:
            self._last = seen
            text = Text(seen[0], style=STYLES[seen[1]], no_wrap=True, overflow="ellipsis")
            self._live.update(text, refresh=True)

    def end(self) -> None:
        self._live.stop()


COMMAND = Command(
    "watch",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "file",
            "the session file; it need not exist yet (default: this folder's newest session)",
            required=False,
            is_file=True,
        ),
        PICK,
        AGENT,
        Flag("--once", "print the line once and exit, for a status line"),
        MODEL,
        WINDOW,
    ),
    examples=(
        ("compactd watch", "watch the newest session of this folder's agents"),
        ("compactd watch session.jsonl --once", "print one line for a status line"),
        ("compactd watch --agent codex --json", "print a JSON object for each change, for a program"),
    ),
)
