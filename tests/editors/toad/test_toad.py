"""toad, an ACP client in a terminal, with compactd as the agent and a fake model on loopback."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.editors.terminal import Terminal, wait_for
from tests.support.command_line import COMPACTD
from tests.support.loopback import Answer, Loopback
from tests.support.own_loop import environment

CACHE = Path(os.environ.get("COMPACTD_TEST_CACHE", Path.home() / ".cache" / "compactd-tests"))
TOAD = CACHE / "toad-0.6.20" / "bin" / "toad"
LEFT_OUT = CACHE / "toad-0.6.20.left-out"
"""The set-up writes this file if it finds no Python that toad can run on."""
LONG = "The ledger was balanced before noon. " * 200


def percent(screen: str) -> float | None:
    """Return the percentage that toad shows on screen, from `usage_update`; None if it shows none."""
    found = re.search(r"\((\d+\.\d)%\)", screen)
    return float(found[1]) if found else None


@pytest.mark.editor
@pytest.mark.skipif(LEFT_OUT.exists(), reason="toad needs Python 3.14, or 3.13")
def test_toad_starts_with_it_shows_the_answer_and_the_gauge_rises(tmp_path: Path) -> None:
    assert TOAD.exists(), "toad is missing: sh tests/editors/toad/setup.sh"
    (tmp_path / "project").mkdir()
    agent = shlex.join([*COMPACTD, "acp", "--model", "openai/gpt-4o", "--window", "30000"])
    answers = [
        Answer(text=f"{LONG}\n\nThat was answer {number}.", chunk_chars=400, count_input=True)
        for number in (1, 2)
    ]
    with Loopback(answers) as server:
        env = {
            **environment("openai", server.base_url),
            "HOME": str(tmp_path),
            "COMPACTD_HOME": str(tmp_path / "data"),
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "",
        }
        command = [str(TOAD), "acp", agent, str(tmp_path / "project")]
        with Terminal(command, cwd=tmp_path, env=env, columns=120, lines=40) as terminal:
            terminal.see("connected")
            empty = wait_for(lambda: percent(terminal.screen()), "a gauge")
            for number, word in enumerate(("Hello", "Again"), start=1):
                terminal.type(word)
                terminal.see(f"❯ {word}")
                terminal.press("Enter")
                terminal.see(f"That was answer {number}.")
            full = wait_for(
                lambda: now if (now := percent(terminal.screen()) or 0.0) > empty else None, "a fuller gauge"
            )

    assert full > empty
    assert ["Hello" in str(seen.body) for seen in server.requests] == [True, True]
