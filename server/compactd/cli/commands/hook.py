"""The help of `compactd hook`, and the output of `compactd doctor --hooks`. The hook itself starts in
`__main__`.
"""

from __future__ import annotations

import os
import time

from msgspec import to_builtins

from compactd.cli.framework.command import Argument, Flag, Option, help_only
from compactd.cli.framework.exit_codes import DONE, FAILED
from compactd.cli.framework.page import Page, plural
from compactd.integrations.hooks.events import AGENTS
from compactd.integrations.hooks.hook_log import HookLogLine, read_log
from compactd.integrations.hooks.hook_state import hooks_folder
from compactd.integrations.hooks.output_counts import OutputCounts, counts_in
from compactd.integrations.hooks.output_reduction import LEVELS
from compactd.storage.paths import data_folder
from compactd.storage.write_access import exposed_data

ABOUT = """\
Agents run this command when an event occurs. It reads the event from standard input
and copies the session into compactd's folder. After a compaction by the agent, it
prints the facts that the agent's summary lost; the agent adds them to its context.
Before a compaction of Claude Code, it prints what the summary must contain. With
--reduce, it prints a shorter text for a tool's output. In every other case it prints
nothing. Its exit code is always 0.

`compactd install AGENT` adds it to the agent's settings. What it did and what failed
is logged; `compactd doctor --hooks` shows the log.
"""

MAX_LOG_LINES = 20
"""The number of newest log lines that are shown."""


def report(page: Page) -> int:
    """Print which agents have hooks, and what the hooks did lately. Return `FAILED` if any of them failed, or
    if a program that they run is gone.
    """
    from compactd.cli.commands.doctor_hooks import broken_hooks, broken_line, installed_hooks, installed_line

    installed = installed_hooks()
    broken = broken_hooks(installed)
    found = tuple(read_log(os.environ))
    exposed = exposed_data(data_folder(os.environ))
    failed = sum(bool(line.failed) for line in found)
    reduced, observed = counts_in(hooks_folder(os.environ))
    if page.is_json:
        log = {
            "reduced": to_builtins(reduced),
            "observed": to_builtins(observed),
            "log": str(hooks_folder(os.environ)),
            "failed": failed,
            "lines": to_builtins(found),
        }
        page.json({**log, "installed": installed, "broken": broken, "warnings": [exposed] if exposed else []})
        return FAILED if failed or broken else DONE
    page.line(f"hooks · {hooks_folder(os.environ)}")
    if exposed:
        page.line(exposed, "due")
    gone = {one.agent for one in broken}
    for agent in installed:
        if agent.agent not in gone:
            page.line(installed_line(agent))
    if not installed:
        page.line("no agent has compactd's hooks; `compactd install AGENT` adds them")
    for one in broken:
        page.line(broken_line(one), "due")
    if broken:
        page.line("`compactd doctor --repair-hooks` repairs them")
    for counts, did in ((reduced, "left out"), (observed, "would have been left out")):
        if counts.tools:
            page.line(_counts_line(counts, did))
    if not found:
        page.line("no hook has added anything to a context yet, and none has failed")
        return FAILED if broken else DONE
    told = plural(failed, "failure") if failed else "no failure"
    page.line(f"{plural(len(found), 'line')} in the log, {told}", "due" if failed else "")
    for line in found[-MAX_LOG_LINES:]:
        page.line(_log_line(line), "due" if line.failed else "")
    return FAILED if failed or broken else DONE


def _counts_line(counts: OutputCounts, did: str) -> str:
    """Return what was left out of tool outputs, and by which tools, those that save most first."""
    total = counts.total
    saved = {name: one.tokens_before - one.tokens_after for name, one in counts.tools.items()}
    tools = ", ".join(f"{name} {size:,}" for name, size in sorted(saved.items(), key=lambda row: -row[1]))
    return (
        f"tool output: {total.tokens_before - total.tokens_after:,} of {total.tokens_before:,} tokens in "
        f"{plural(total.count, 'output')} {did} ({tools})"
    )


def _log_line(line: HookLogLine) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(line.at))
    what = line.failed or line.did
    return f"  {when}  {line.agent:11} {line.event:7} {line.session:9} {line.ms:5} ms  {what}"


COMMAND = help_only(
    "hook",
    about=ABOUT,
    params=(
        Argument("agent", f"{', '.join(AGENTS)}", choices=AGENTS),
        Option("--limit", "the most characters that are printed (9,500)", metavar="CHARS"),
        Flag("--no-steer", "do not print what a summary of Claude Code must contain"),
        Option("--reduce", "print a shorter text for a tool's output (PostToolUse)", choices=LEVELS),
        Flag("--observe", "with --reduce: only count what would be left out"),
        Option("--deadline", "seconds after which it stops, whatever it is doing (2)", metavar="SECONDS"),
    ),
    examples=(("compactd hook claude-code < event.json", "run it as Claude Code does"),),
)
