"""What a command says if no sessions are stored: how many sessions agents have on this machine, and how to
import them.
"""

from __future__ import annotations

import os

from compactd.cli.framework.page import Page, plural


def show_nothing_stored(page: Page) -> None:
    """Say that nothing is stored, and what to do."""
    from compactd.cli.agent_files.places import AGENTS, find_files

    page.line("no sessions are stored")
    found = sum(not file.is_subagent for file in find_files(os.environ))
    if found:
        page.line(f"`compactd import --all` imports the {plural(found, 'session')} of agents on this machine")
    else:
        page.line(
            f"no sessions of agents were found on this machine ({', '.join(AGENTS)}); "
            "`compactd import FILE` imports a session file"
        )
