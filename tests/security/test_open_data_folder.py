"""If other users may write to the data folder, compactd says so and gives nothing in it to an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.support.agent_transcripts import LIMIT, past
from tests.support.command_line import run
from tests.support.hook_runs import Agent


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_an_open_data_folder_is_told_in_the_log_in_the_info_and_by_doctor(
    spawn: Spawn, home: Path, tmp_path: Path, mode: int
) -> None:
    home.mkdir(exist_ok=True)
    home.chmod(mode)
    daemon = spawn()
    warnings = daemon.call("daemon/info")["warnings"]
    doctor = run(tmp_path, "doctor", "--hooks", env={"COMPACTD_HOME": str(home)})

    assert len(warnings) == 1
    assert f"every user of this machine may write to {home}" in warnings[0]
    assert "chmod go-w" in warnings[0]
    assert warnings[0] in doctor.words


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_data_folder_that_others_may_only_read_is_as_good_as_ever(
    spawn: Spawn, home: Path, mode: int
) -> None:
    home.mkdir(exist_ok=True)
    home.chmod(mode)

    assert spawn().call("daemon/info").get("warnings", []) == []


def test_no_hook_gives_back_what_others_may_have_planted(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.start()
    agent.session.say(*past())
    agent.stop()
    agent.before()
    agent.session.compact()
    (tmp_path / "data").chmod(0o777)

    refused = agent.start("compact")
    (tmp_path / "data").chmod(0o755)
    given = agent.start("compact")

    assert (refused.text, "may write to" in (refused.done.failed or "")) == ("", True)
    assert LIMIT in given.text
