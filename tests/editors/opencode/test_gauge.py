"""OpenCode 1.18.33's terminal app with compactd's gauge in its sidebar: fill and number of compactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.agents import PATIENCE_S
from tests.editors.opencode.driven import OpenCode
from tests.editors.terminal import wait_for
from tests.support.loopback import Answer, Loopback

pytestmark = [pytest.mark.editor, pytest.mark.agent]

FILL = " % · "
"""OpenCode's own line writes its percentage otherwise."""
COUNTED = Answer(text="Noted.", count_input=True)


def test_the_sidebar_shows_the_fill_and_the_compactions(tmp_path: Path) -> None:
    with Loopback(then=COUNTED) as server, OpenCode(tmp_path, server) as opencode:
        session = opencode.new_session()
        for topic in ("alpha", "beta", "gamma"):
            session.ask(f"Never touch src/api.py. {topic} " * 60)
        with opencode.sidebar(session) as terminal:
            terminal.see("not compacted yet", PATIENCE_S)
            terminal.see(FILL, PATIENCE_S)

            session.compact()

            terminal.see("1 compaction", PATIENCE_S)
            terminal.see("ctx – · 20k", PATIENCE_S)
            wait_for(lambda: "by the model" not in terminal.screen(), "a summary of ours", PATIENCE_S)
            session.ask("Go on.")
            terminal.see(FILL, PATIENCE_S)
