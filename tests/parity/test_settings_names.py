"""The setting names of Opal, the go-agent and klaude, in every layer; the answer names the layer.

docs/dev/behaviour.md, "Settings": the request › `session/configure` › `session/start` › the client's options
› the environment › the workspace's file › the user's file › the profile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import turns
from tests.support.wire import append, begin, compact, report

NAMES: dict[str, tuple[Any, Any]] = {
    "enabled": (False, True),
    "context_window": (50_000, 60_000),
    "reserve_tokens": (4_000, 5_000),
    "keep_recent_tokens": (7_000, 8_000),
}
"""docs/specs.md, "go-agent.md", "Configuration" (klaude's and Opal's names are among them): a value, and
another one."""

EACH_NAME = pytest.mark.parametrize("name", NAMES)
EACH_PROFILE = pytest.mark.parametrize("profile", ["default", "opal", "go-agent", "klaude"])


def toml(value: object) -> str:
    return str(value).lower()


def table(values: dict[str, Any]) -> str:
    return "[compaction]\n" + "".join(f"{name} = {toml(value)}\n" for name, value in values.items())


@pytest.fixture(scope="module")
def by_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose environment sets all four, with a user's file that says otherwise."""
    folder = tmp_path_factory.mktemp("environment")
    user = folder / "config" / "compactd"
    user.mkdir(parents=True)
    (user / "config.toml").write_text(table({name: other for name, (_, other) in NAMES.items()}))
    env = {f"COMPACTD_{name.upper()}": toml(value) for name, (value, _) in NAMES.items()}
    with Daemon(folder / "home", env=env) as running:
        yield running


@pytest.fixture(scope="module")
def by_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose user's file sets all four; the window at its top level."""
    folder = tmp_path_factory.mktemp("user")
    user = folder / "config" / "compactd"
    user.mkdir(parents=True)
    values = {name: value for name, (value, _) in NAMES.items() if name != "context_window"}
    (user / "config.toml").write_text(f"context_window = {NAMES['context_window'][0]}\n{table(values)}")
    with Daemon(folder / "home") as running:
        yield running


@pytest.fixture(scope="module")
def by_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose client sets all four when it initializes."""
    with ExitStack() as stack:
        running = stack.enter_context(Daemon(tmp_path_factory.mktemp("client") / "home"))
        options = {"compaction": {name: value for name, (value, _) in NAMES.items()}}
        running.call("initialize", processId=None, capabilities={}, initializationOptions=options)
        running.notify("initialized")
        yield running


def told(daemon: Daemon, name: str, **start: Any) -> tuple[Any, str]:
    """(value, source) of a setting in a new session."""
    compaction = {"profile": "go-agent", **start.pop("compaction", {})}
    session = daemon.call("session/start", compaction=compaction, persist=False, **start)["session_id"]
    found = daemon.call("session/configure", session_id=session)["settings"][name]
    return found["value"], found["source"]


@EACH_NAME
@EACH_PROFILE
def test_a_name_in_session_start_is_taken(daemon: Daemon, name: str, profile: str) -> None:
    value, _ = NAMES[name]

    assert told(daemon, name, compaction={"profile": profile, name: value}) == (value, "session/start")


@EACH_NAME
def test_session_configure_beats_session_start(daemon: Daemon, name: str) -> None:
    value, other = NAMES[name]
    compaction = {"profile": "go-agent", name: value}
    session = daemon.call("session/start", compaction=compaction, persist=False)["session_id"]

    answer = daemon.call("session/configure", session_id=session, compaction={name: other})

    assert answer["settings"][name] == {"value": other, "source": "session/configure"}


@EACH_NAME
def test_session_start_beats_the_client_and_the_environment(
    by_client: Daemon, by_environment: Daemon, name: str
) -> None:
    _, other = NAMES[name]

    for daemon in (by_client, by_environment):
        assert told(daemon, name, compaction={name: other}) == (other, "session/start")


@EACH_NAME
def test_the_clients_options_set_a_name_and_a_later_change_replaces_it(by_client: Daemon, name: str) -> None:
    value, other = NAMES[name]
    first = told(by_client, name)
    everything = {key: value for key, (value, _) in NAMES.items()}

    by_client.notify("workspace/didChangeConfiguration", settings={"compaction": {**everything, name: other}})
    second = told(by_client, name)
    by_client.notify("workspace/didChangeConfiguration", settings={"compaction": {}})
    third = told(by_client, name)

    assert first == (value, "initializationOptions")
    assert second == (other, "didChangeConfiguration")
    assert third == first


@EACH_NAME
def test_the_environment_sets_a_name_and_beats_both_files(
    by_environment: Daemon, tmp_path: Path, name: str
) -> None:
    value, other = NAMES[name]
    (tmp_path / ".compactd.toml").write_text(table({name: other}))
    by_environment.call("trust/set", path=str(tmp_path), trusted=True)

    assert told(by_environment, name, working_dir=str(tmp_path)) == (value, "environment")


@EACH_NAME
def test_a_trusted_workspaces_file_sets_a_name_and_beats_the_users(
    by_user: Daemon, tmp_path: Path, name: str
) -> None:
    value, other = NAMES[name]
    (tmp_path / ".compactd.toml").write_text(table({name: other}))
    by_user.call("trust/set", path=str(tmp_path), trusted=True)

    assert told(by_user, name, working_dir=str(tmp_path)) == (other, ".compactd.toml")
    found, source = told(by_user, name)
    assert found == value
    assert "config.toml" in source


@EACH_NAME
def test_what_no_layer_names_is_the_profiles(daemon: Daemon, name: str) -> None:
    assert told(daemon, name) == (True if name == "enabled" else None, "profile go-agent")


@pytest.mark.parametrize(
    ("given", "window", "source"),
    [
        ({"compaction": {"context_window": 41_000}, "context_window": 42_000}, 41_000, "session/start"),
        ({"context_window": 42_000}, 42_000, "session/start"),
    ],
    ids=["compaction's", "top-level"],
)
def test_compactions_own_window_comes_before_the_top_levels(
    by_user: Daemon, given: dict[str, Any], window: int, source: str
) -> None:
    compaction = {"profile": "go-agent", **given.get("compaction", {})}
    begun = by_user.call("session/start", **{**given, "compaction": compaction}, persist=False)
    settings = by_user.call("session/configure", session_id=begun["session_id"])["settings"]

    assert begun["token_usage"]["context_window"] == window
    assert settings["context_window"] == {"value": window, "source": source}


def test_in_one_file_compactions_window_comes_before_the_top_levels(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / ".compactd.toml").write_text("context_window = 42000\n[compaction]\ncontext_window = 41000\n")

    assert told(daemon, "context_window", working_dir=str(tmp_path)) == (41_000, ".compactd.toml")


def test_the_requests_own_budget_beats_every_layer(by_environment: Daemon) -> None:
    compaction = {"profile": "go-agent", "estimator": "chars4", "context_window": 100_000}
    session = by_environment.call("session/start", compaction=compaction, persist=False)["session_id"]
    append(by_environment, session, *turns(10, 1000))

    by_setting = compact(by_environment, session, dry_run=True)
    by_request = compact(by_environment, session, keep_recent=3000, dry_run=True)

    assert by_setting["kept_messages"] == 8, "COMPACTD_KEEP_RECENT_TOKENS is 7,000: back to a user's message"
    assert by_request["kept_messages"] == 4


@EACH_PROFILE
def test_disabled_by_the_environment_nothing_is_compacted_by_itself(
    by_environment: Daemon, profile: str
) -> None:
    compaction = {"profile": profile, "context_window": 10_000}
    session = by_environment.call("session/start", compaction=compaction, persist=False)["session_id"]
    append(by_environment, session, *turns(2, 100), usage=report(9_900))

    assert begin(by_environment, session) is None


@pytest.mark.parametrize("on", ["1", "true", "yes"])
def test_the_switch_in_the_environment_beats_every_layer(tmp_path: Path, on: str) -> None:
    with Daemon(tmp_path / "home", env={"COMPACTD_DISABLE_AUTOCOMPACT": on}) as daemon:
        for profile in ("opal", "go-agent", "klaude"):
            compaction = {"profile": profile, "enabled": True, "context_window": 10_000}
            session = daemon.call("session/start", compaction=compaction, persist=False)["session_id"]
            append(daemon, session, *turns(2, 100), usage=report(9_900))

            assert begin(daemon, session) is None
            found = daemon.call("session/configure", session_id=session)["settings"]["enabled"]
            assert found == {"value": False, "source": "COMPACTD_DISABLE_AUTOCOMPACT"}


def test_a_name_that_is_none_is_told_of_in_a_file(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / ".compactd.toml").write_text("[compaction]\nkeep_recent_token = 5\nreserve_tokens = -1\n")

    begun = daemon.call("session/start", working_dir=str(tmp_path), persist=False)
    refused = daemon.refusal("session/start", compaction={"reserve_tokens": -1})
    by_start = daemon.call("session/start", compaction={"keep_recent": 5, "reserve": 6})
    session = by_start["session_id"]
    by_configure = daemon.call("session/configure", session_id=session, compaction={"PRUNE_MINIMUM": 7})
    append(daemon, session, *turns(10, 200))
    by_compact = compact(daemon, session, keep_recent_tokens=8)

    warnings = " ".join(begun["warnings"])
    assert "keep_recent_token" in warnings
    assert "reserve_tokens" in warnings
    assert (refused.code, refused.data["path"]) == (-32602, "$.compaction.reserve_tokens")
    for told, name, meant in (
        (by_start, "keep_recent", "keep_recent_tokens"),
        (by_start, "reserve", "reserve_tokens"),
        (by_configure, "PRUNE_MINIMUM", "prune_minimum"),
        (by_compact, "keep_recent_tokens", "keep_recent"),
    ):
        (warning,) = [words for words in told["warnings"] if re.search(rf"\b{name} is not a ", words)]
        assert f"(perhaps {meant} is meant)" in warning


@pytest.mark.parametrize("name", ["keep_recent", "compaction_prompt", "reserve", "PRUNE_MINIMUM"])
@pytest.mark.parametrize("method", ["session/start", "session/configure"])
def test_a_name_that_is_none_is_told_of(daemon: Daemon, method: str, name: str) -> None:
    session_id = daemon.call("session/start", persist=False)["session_id"]

    told = daemon.call(method, session_id=session_id, compaction={name: 5000})["warnings"]

    assert [f"{method}: compaction.{name} is not a setting" in warning for warning in told] == [True]


ALL = {
    **{name: value for name, (value, _) in NAMES.items()},
    "model_auto_compact_token_limit": 9_000,
    "compact_prompt": "Say it in one line.",
    "preserve_count": 7,
    "auto": False,
    "prune": True,
    "prune_minimum": 100,
    "prune_protect": 200,
    "protected_tools": ["think"],
}
"""A value for each name that protocol.md's table of the five systems' names has."""

MEANS = {"preserve_count": "keep_messages", "auto": "enabled"}


def test_the_settings_page_lists_the_names_of_the_five_systems() -> None:
    text = (Path(__file__).parents[2] / "docs/settings.md").read_text("utf-8")
    section = text.partition("\n## What other agents call them\n")[2]

    listed = set(re.findall(r"`(?:compaction\.)?([a-z_]+)`", section))

    assert set(ALL) - listed == set()


@pytest.mark.parametrize("name", ALL)
def test_each_of_those_names_is_taken_and_answered_with_its_source(
    daemon: Daemon, tmp_path: Path, name: str
) -> None:
    # JSON's text, numbers, switches and lists are TOML's, too.
    (tmp_path / ".compactd.toml").write_text(f"[compaction]\n{name} = {json.dumps(ALL[name])}\n")
    daemon.call("trust/set", path=str(tmp_path), trusted=True)
    session = daemon.call("session/start", working_dir=str(tmp_path), persist=False)["session_id"]
    by_start = daemon.call("session/start", compaction={name: ALL[name]}, persist=False)["session_id"]

    in_file = daemon.call("session/configure", session_id=session)["settings"][MEANS.get(name, name)]
    in_start = daemon.call("session/configure", session_id=by_start)["settings"][MEANS.get(name, name)]

    assert in_file == {"value": ALL[name], "source": ".compactd.toml"}
    assert in_start == {"value": ALL[name], "source": "session/start"}
