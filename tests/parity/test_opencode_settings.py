"""docs/specs-evmts-opencode.md, "opencode.md", "Configuration", sentence by sentence, over the wire.

`docs/specs-evmts-opencode.md` says which test is whose. Where the spec and docs/dev/behaviour.md differ,
docs/dev/behaviour.md wins, and the test says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.parity.opencode import DUE, filled, outputs, pruned, with_output
from tests.support.client import Daemon
from tests.support.talk import turns
from tests.support.wire import append, begin, started

# --- Configuration ----------------------------------------------------------------------------------


def switches(daemon: Daemon, **start: Any) -> list[tuple[Any, str]]:
    """(value, where it came from) of `enabled`, `prune` and `context_window` in a new session."""
    session = daemon.call("session/start", **start)["session_id"]
    shown = daemon.call("session/configure", session_id=session)["settings"]
    return [(shown[name]["value"], shown[name]["source"]) for name in ("enabled", "prune", "context_window")]


def test_both_switches_are_on_by_default(daemon: Daemon) -> None:
    told = switches(daemon, compaction={"profile": "opencode"})

    assert told[:2] == [(True, "profile opencode"), (True, "profile opencode")]


OFF = {"auto": False, "prune": False}


def test_the_specs_names_count_in_each_layer_of_settings(tmp_path: Path) -> None:
    config, work = tmp_path / "config" / "compactd", tmp_path / "work"
    config.mkdir(parents=True)
    work.mkdir()
    (config / "config.toml").write_text(
        'context_window = 1000\n[compaction]\nprofile = "opencode"\nauto = false\nprune = false\n', "utf-8"
    )
    (work / ".compactd.toml").write_text(
        "context_window = 2000\n[compaction]\nauto = true\nprune = true\n", "utf-8"
    )
    env = {"COMPACTD_AUTO": "false", "COMPACTD_PRUNE": "false", "COMPACTD_CONTEXT_WINDOW": "3000"}

    with Daemon(tmp_path / "home") as daemon:
        daemon.call("trust/set", path=str(work), trusted=True)
        users = switches(daemon)
        workspaces = switches(daemon, working_dir=str(work))
        asked = switches(daemon, working_dir=str(work), compaction={**OFF, "context_window": 5000})
    with Daemon(tmp_path / "home", env=env) as daemon:
        environments = switches(daemon, working_dir=str(work))
        options = {"compaction": {"auto": True, "prune": True}, "context_window": 4000}
        daemon.call("initialize", processId=None, capabilities={}, initializationOptions=options)
        daemon.notify("initialized")
        editors = switches(daemon)

    def layer(on: bool, window: int, source: str) -> list[tuple[Any, str]]:
        return [(on, source), (on, source), (window, source)]

    assert users == layer(False, 1000, "config.toml")
    assert workspaces == layer(True, 2000, ".compactd.toml")
    assert environments == layer(False, 3000, "environment")
    assert editors == layer(True, 4000, "initializationOptions")
    assert asked == layer(False, 5000, "session/start")


@pytest.mark.parametrize(("value", "is_off"), [("1", True), ("yes", True), ("false", False), ("", False)])
def test_opencodes_two_variables_turn_it_off_above_every_setting(
    tmp_path: Path, value: str, is_off: bool
) -> None:
    env = {"OPENCODE_DISABLE_AUTOCOMPACT": value, "OPENCODE_DISABLE_PRUNE": value}
    on = {"auto": True, "prune": True}

    with Daemon(tmp_path / "home", env=env) as daemon:
        told = switches(daemon, compaction={"profile": "opencode", **on})
        due = begin(daemon, filled(daemon, **DUE, auto=True))
        begun = daemon.call(
            "turn/begin", session_id=with_output(daemon, *outputs(30_000, 40_000), prune=True, auto=True)
        )
        other = started(daemon, "default", 1000)
        append(daemon, other, *turns(9, 100))
        others = begin(daemon, other)

    assert [value for value, _ in told[:2]] == [not is_off, not is_off]
    assert (due is None) is is_off
    assert (begun["pruned"] == 0) is is_off
    assert others is not None, "the other profiles have not heard of them"
    assert others["compacted"] is True


def test_compacting_alone_can_be_turned_off_by_its_variable(tmp_path: Path) -> None:
    with Daemon(tmp_path / "home", env={"OPENCODE_DISABLE_AUTOCOMPACT": "1"}) as daemon:
        assert pruned(daemon, with_output(daemon, *outputs(30_000, 40_000))) == ["e3"]
        assert begin(daemon, filled(daemon, **DUE)) is None


def test_pruning_alone_can_be_turned_off_by_its_variable(tmp_path: Path) -> None:
    with Daemon(tmp_path / "home", env={"OPENCODE_DISABLE_PRUNE": "1"}) as daemon:
        session = with_output(daemon, *outputs(30_000, 40_000))
        assert pruned(daemon, session) == []
        done = begin(daemon, filled(daemon, **DUE))

    assert done is not None
    assert done["compacted"] is True
