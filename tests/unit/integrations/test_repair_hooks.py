"""Hooks whose program is gone: found, repaired, and still removed without a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compactd.integrations.hooks.install import install, missing_programs, repair, uninstall
from compactd.integrations.hooks.settings_change import WantedHooks, settings_path
from tests.support.agent_transcripts import AGENTS
from tests.support.command_line import run
from tests.unit.integrations.settings_files import ODD


def program_in(folder: Path) -> str:
    folder.mkdir(parents=True)
    script = folder / "compactd"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return str(script)


def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "COMPACTD_HOME": str(home / "data")}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", ODD)
def test_a_repair_changes_only_the_program_and_uninstall_still_restores_every_byte(
    agent: str, name: str, tmp_path: Path
) -> None:
    path = settings_path(agent, environ(tmp_path))
    path.parent.mkdir()
    path.write_bytes(ODD[name].encode())
    old, new = program_in(tmp_path / "old"), program_in(tmp_path / "new")
    install(path, WantedHooks(agent, old), environ(tmp_path))
    installed = path.read_bytes()

    whole = missing_programs(path), repair(path, WantedHooks(agent, new), environ(tmp_path)).is_needed
    Path(old).unlink()
    gone = missing_programs(path)
    dry = repair(path, WantedHooks(agent, new), environ(tmp_path), dry_run=True)
    unwritten = path.read_bytes()
    repair(path, WantedHooks(agent, new), environ(tmp_path))
    repaired = path.read_bytes()
    uninstall(path, agent, environ(tmp_path))

    assert whole == ((), False)
    assert gone == (old,)
    assert dry.is_needed
    assert unwritten == installed
    assert repaired == installed.replace(old.encode(), new.encode())
    assert path.read_bytes() == ODD[name].encode()


def test_after_an_edit_by_the_user_uninstall_removes_repaired_hooks_and_keeps_the_edit(
    tmp_path: Path,
) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"model": "x"}')
    old, new = program_in(tmp_path / "old"), program_in(tmp_path / "new")
    install(path, WantedHooks("claude-code", old), environ(tmp_path))
    path.write_text(path.read_text().replace('"x"', '"y"'))
    Path(old).unlink()

    repair(path, WantedHooks("claude-code", new), environ(tmp_path))
    repaired = path.read_text()
    uninstall(path, "claude-code", environ(tmp_path))

    assert new in repaired
    assert old not in repaired
    assert json.loads(path.read_text()) == {"model": "y"}


@pytest.mark.parametrize(
    ("command", "becomes"),
    [
        (
            "nice '/gone/my venv/bin/compactd' hook claude-code --limit 500",
            "nice NEW hook claude-code --limit 500",
        ),
        ("/gone/bin/python3 -I -m compactd hook claude-code", "NEW hook claude-code"),
        ("/gone/bin/compactd-lint --all", None),
        ("/gone/bin/compactd inspect f.jsonl", None),
        ("/gone/bin/other hook claude-code", None),
    ],
)
def test_only_commands_of_compactd_are_repaired(command: str, becomes: str | None, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    hook = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}, "note": command}
    path.write_text(json.dumps(hook))
    new = program_in(tmp_path / "new")

    repair(path, WantedHooks("claude-code", new), environ(tmp_path))

    after = json.loads(path.read_text())
    expected = command if becomes is None else becomes.replace("NEW", new)
    assert after["hooks"]["Stop"][0]["hooks"][0]["command"] == expected
    assert after["note"] == command


def test_settings_that_do_not_exist_stay_so(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"

    change = repair(path, WantedHooks("codex", "/new/compactd"), environ(tmp_path))

    assert (missing_programs(path), change.is_needed, path.exists()) == ((), False, False)


def test_doctor_finds_broken_hooks_and_status_lines_and_repairs_them(tmp_path: Path) -> None:
    path = settings_path("claude-code", environ(tmp_path))
    run(tmp_path, "install", "claude-code")
    installed = path.read_text()
    [program] = {
        h["hooks"][0]["command"].rsplit(" hook")[0] for [h] in json.loads(installed)["hooks"].values()
    }
    path.write_text(installed.replace(program, "/gone/bin/compactd"))

    found = run(tmp_path, "doctor", "--hooks")
    again = run(tmp_path, "install", "claude-code")
    repaired = run(tmp_path, "doctor", "--repair-hooks", "--json")
    whole = run(tmp_path, "doctor", "--hooks")
    nothing = run(tmp_path, "doctor", "--repair-hooks")

    assert found.code == 1
    assert f"Claude Code: {path} runs /gone/bin/compactd, which does not exist" in found.out
    assert "a program that is gone: /gone/bin/compactd" in again.out
    assert [one["agent"] for one in repaired.json["repaired"]] == ["claude-code"]
    assert path.read_text() == installed
    assert (whole.code, nothing.code) == (0, 3)


def test_doctor_says_which_agents_have_hooks_and_which_program_they_run(tmp_path: Path) -> None:
    none = run(tmp_path, "doctor", "--hooks")
    run(tmp_path, "install", "codex")
    some, data = run(tmp_path, "doctor", "--hooks"), run(tmp_path, "doctor", "--hooks", "--json")
    run(tmp_path, "uninstall", "codex")
    removed = run(tmp_path, "doctor", "--hooks")

    path = settings_path("codex", environ(tmp_path))
    [program] = data.json["installed"][0]["programs"]
    assert none.lines[1] == "no agent has compactd's hooks; `compactd install AGENT` adds them"
    assert some.lines[1] == f"Codex: {path} runs {program}"
    assert Path(program).is_absolute()
    assert (none.code, some.code, removed.code) == (0, 0, 0)
    assert removed.out == none.out


def test_install_says_which_program_the_hooks_run_and_what_breaks_it(tmp_path: Path) -> None:
    told = run(tmp_path, "install", "gemini-cli").out

    assert "the hooks run /" in told
    assert "It breaks if " in told or "this link" in told
