"""`compactd install hermes` and `compactd uninstall hermes`: the plugin for Hermes Agent."""

from __future__ import annotations

import os

from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, CommandError
from compactd.cli.framework.page import Page
from compactd.integrations.hooks.hermes_plugin import NAME, carry_out, hermes_home, plugin_changes
from compactd.integrations.hooks.install import CannotChange

ENABLE = (
    "In Hermes' Python, install compactd, too. Then enable the plugin:",
    "`hermes plugins enable compactd --no-allow-tool-override`",
    "`hermes config set context.engine compactd`",
)
DISABLE = ("If Hermes still uses it: `hermes config set context.engine compressor`",)


def run(page: Page, *, dry_run: bool, remove: bool = False) -> int:
    """Put the plugin into Hermes' folder, or remove it, and show the change."""
    try:
        home = hermes_home(os.environ)
    except KeyError:
        raise CommandError("the home folder is unknown.", hint="Set HERMES_HOME to Hermes' folder.") from None
    if not home.is_dir():
        raise CommandError(
            f"Hermes has no folder {home}.", hint="Start Hermes once, or set HERMES_HOME to its folder."
        )
    try:
        changes = plugin_changes(home, remove=remove)
        needed = tuple(change for change in changes if change.is_needed)
        if not dry_run:
            carry_out(needed)
    except CannotChange as error:
        raise CommandError(f"{error}.", hint="Not everything was changed. Run the command again.") from error
    done = bool(needed) and not dry_run
    if page.is_json:
        diff = "".join(change.diff() for change in needed)
        folder = str(changes[0].path.parent)
        page.json({"agent": NAME, "settings": folder, "changed": done, "diff": diff, "notes": ()})
        return DONE if needed else NOTHING_TO_DO
    for change in needed:
        for line in change.diff().splitlines():
            page.line(line)
        did = "removed" if change.after is None else "wrote"
        page.line(f"{did if done else 'nothing was written:'} {change.path}")
    if not needed:
        state = "is not" if remove else "is already"
        page.line(f"Hermes Agent · {changes[0].path.parent}: compactd's plugin {state} installed")
    if done:
        for line in DISABLE if remove else ENABLE:
            page.line(line)
    return DONE if needed else NOTHING_TO_DO
