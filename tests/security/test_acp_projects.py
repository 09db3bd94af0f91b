"""An ACP agent chooses the ids of its sessions: no id gives it another project's conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compactd.client import Client
from tests.support.acp_clients import PLAIN_AGENT, before, talking
from tests.support.command_line import environment

SECRET = "The staging DB password is hunter2-staging. Step"


@pytest.mark.parametrize("is_due", [False, True])
async def test_an_agent_that_takes_the_id_of_another_projects_session_is_told_nothing_of_it(
    tmp_path: Path, is_due: bool
) -> None:
    env = {
        "COMPACTD_HOME": str(tmp_path / "data"),
        "COMPACTD_STRATEGY": "extract",
        "COMPACTD_KEEP_RECENT_TOKENS": "2000",
    }
    payroll, widget = tmp_path / "payroll", tmp_path / "widget"
    payroll.mkdir()
    widget.mkdir()
    # The agent calls its first session `s1`, in each process.
    async with talking(payroll, *before(PLAIN_AGENT, payroll / "log"), env=env) as talk:
        for number in (1, 2, 3, 4):
            await talk.say(f"{SECRET} {number}")
        if is_due:
            # The next prompt of this session would carry the summary.
            await talk.command("/compact")
    async with talking(widget, *before(PLAIN_AGENT, widget / "log"), env=env) as talk:
        for number in (1, 2, 3, 4):
            await talk.say(f"Look at widget, step {number}")
        await talk.command("/compact")
        context = await talk.command("/context")
        await talk.say("Look at widget, step 5")
    async with talking(widget, *before(PLAIN_AGENT, widget / "log"), env=env, load="s1") as talk:
        await talk.say("Look at widget, step 6")
    async with talking(payroll, *before(PLAIN_AGENT, payroll / "log"), env=env, load="s1") as talk:
        await talk.say(f"{SECRET} 5")
    with Client(env=environment(tmp_path)) as client:
        sessions = {one.session_id: one.message_count for one in client.session_list().sessions}

    log = (widget / "log").read_text()
    prompts = [json.loads(line) for line in log.splitlines()]
    texts = [one["text"] for one in prompts if one["did"] == "prompt"]
    assert "hunter2" not in log
    assert texts[0] == "Look at widget, step 1"
    assert ("Compactions: 1" in context, "step 4" in texts[4], texts[5]) == (
        True,
        True,
        "Look at widget, step 6",
    )
    assert len(sessions) == 2
    assert "hunter2" in (payroll / "log").read_text().splitlines()[-1]
