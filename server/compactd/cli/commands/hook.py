"""`compactd hook --help`, and what `compactd doctor --hooks` shows: hooks themselves start in `__main__`."""

from __future__ import annotations

import os
import time

from msgspec import Struct, to_builtins

from compactd.cli.framework.command import Argument, Command, Option
from compactd.cli.framework.exit_codes import DONE, FAILED, USAGE
from compactd.cli.framework.page import Page, plural
from compactd.integrations.hooks.events import AGENTS
from compactd.integrations.hooks.log import Line, lines
from compactd.integrations.hooks.state import hooks_folder
from compactd.storage.exposure import exposed_data
from compactd.storage.paths import data_folder

ABOUT = """\
What an agent runs at its events: reads the event from standard input, mirrors the
session, and after the agent's own compaction gives back the facts that its summary
lost, as context. Silent in every other case; its exit code is always 0.

`compactd install AGENT` puts it into the agent's settings. What it did and what went
wrong stands in a log of its own: `compactd doctor --hooks` shows it.
"""

SHOWN = 20
"""Lines of the log, the newest."""


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    agent: str
    limit: str | None
    deadline: str | None


def run(options: Options, page: Page) -> int:
    """Only reached with options that the hook does not have."""
    return USAGE


def report(page: Page) -> int:
    """What the hooks of this machine did lately: 0 where none failed."""
    found = tuple(lines(os.environ))
    exposed = exposed_data(data_folder(os.environ))
    failed = sum(bool(line.failed) for line in found)
    if page.is_json:
        log = {"log": str(hooks_folder(os.environ)), "failed": failed, "lines": to_builtins(found)}
        page.json({**log, "warnings": [exposed] if exposed else []})
        return FAILED if failed else DONE
    page.line(f"hooks · {hooks_folder(os.environ)}")
    if exposed:
        page.line(exposed, "due")
    if not found:
        page.line("no hook has given anything back yet, and none has failed")
        return DONE
    told = plural(failed, "failure") if failed else "no failure"
    page.line(f"{plural(len(found), 'line')} in the log, {told}", "due" if failed else "")
    for line in found[-SHOWN:]:
        page.line(_told(line), "due" if line.failed else "")
    return FAILED if failed else DONE


def _told(line: Line) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(line.at))
    what = line.failed or line.did
    return f"  {when}  {line.agent:11} {line.event:7} {line.session:9} {line.ms:5} ms  {what}"


COMMAND = Command(
    "hook",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("agent", f"{', '.join(AGENTS)}", choices=AGENTS),
        Option("--limit", "characters that are given back at most (9,500)", metavar="CHARS"),
        Option("--deadline", "seconds after which it ends, whatever it does (2)", metavar="SECONDS"),
    ),
    examples=(("compactd hook claude-code < event.json", "as Claude Code runs it"),),
    has_json=False,
)
