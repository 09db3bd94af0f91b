"""docs/specs-evmts-opencode.md, "evmts-32.md", the technical requirements, sentence by sentence, over the
wire.

`docs/specs-evmts-opencode.md` says which test is whose. Where the spec and docs/dev/behaviour.md differ,
docs/dev/behaviour.md wins, and the test says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.parity.evmts import HEADINGS, SUMMARY, TOO_SHORT, by_a_model, filled
from tests.support.client import Daemon
from tests.support.loopback import Loopback
from tests.support.talk import CHARS4, assistant, said, turns, user
from tests.support.wire import append, compact, started, state, view

# --- technical-requirements -------------------------------------------------------------------------


def test_the_sessions_state_holds_its_tokens(daemon: Daemon) -> None:
    session = filled(daemon)

    usage = state(daemon, session)["token_usage"]

    assert usage["current_context_tokens"] == 4000
    assert (usage["context_window"], usage["threshold_tokens"], usage["percent"]) == (100_000, 80_000, 4.0)


def test_whether_a_compaction_is_due_is_told_with_each_append_and_each_answer(daemon: Daemon) -> None:
    session = started(daemon, "evmts", 100_000, settings={"model_auto_compact_token_limit": 300})

    kinds = [
        append(daemon, session, user(200))["decision"]["kind"],
        daemon.call("turn/end", session_id=session, messages=[assistant(101)])["decision"]["kind"],
    ]

    assert kinds == ["fits", "due"]


def test_a_model_is_asked_for_the_five_headings_and_must_keep_to_them(
    daemon: Daemon, server: Loopback
) -> None:
    session = by_a_model(daemon, server, SUMMARY, "I will go on with the parser.")

    done = compact(daemon, session)
    append(daemon, session, *turns(10, 200))
    refused = compact(daemon, session)

    sent = server.requests[0].raw.decode()
    assert [sent.index(f"## {heading}") for heading in HEADINGS] == sorted(
        sent.index(f"## {heading}") for heading in HEADINGS
    )
    assert done["strategy"] == "summarize"
    assert refused["strategy"] == "extract", "no heading of the five: no summary"
    assert "headings" in refused["reason"]


def test_the_compact_endpoint_answers_with_what_the_spec_names(daemon: Daemon) -> None:
    session = filled(daemon)

    done = compact(daemon, session)

    summary, *preserved = view(daemon, session)
    after = daemon.call("session/context", session_id=session)["tokens"]
    assert (done["compacted"], done["reason"], done["messages_removed"]) == (True, "", 15)
    assert (done["tokens_before"], done["tokens_after"]) == (4000, after)
    assert done["tokens_saved"] == 4000 - after > 0
    assert done["summary"] == said(summary)
    assert [said(message) for message in preserved] == [said(message) for message in turns(10, 200)[-5:]]
    short = compact(daemon, filled(daemon, *turns(3, 200)))
    assert (short["compacted"], short["reason"], short["summary"]) == (False, TOO_SHORT, "")
    assert (short["messages_removed"], short["tokens_saved"]) == (0, 0)
    assert daemon.refusal("session/compact", session_id="nobody").code == 1001


def test_the_history_of_compactions_stands_in_the_sessions_metadata(daemon: Daemon) -> None:
    session = filled(daemon)
    done = [compact(daemon, session)]
    append(daemon, session, *turns(6, 200))
    done.append(compact(daemon, session))

    kept = state(daemon, session)["compaction"]
    listed = next(s for s in daemon.call("session/list")["sessions"] if s["session_id"] == session)
    history = daemon.call("session/history", session_id=session)["entries"]

    assert (kept["count"], listed["compactions"]) == (2, 2)
    assert kept["tokens_saved"] == sum(one["tokens_saved"] for one in done)
    ids = [one["compaction_id"] for one in done]
    assert [one["compaction_id"] for one in kept["history"]] == ids
    assert [e["compaction"]["compaction_id"] for e in history if e["kind"] == "compaction"] == ids
    assert [one["messages_removed"] for one in kept["history"]] == [one["messages_removed"] for one in done]


OWN_NAMES: dict[str, Any] = {
    "model_auto_compact_token_limit": 5000,
    "compact_prompt": "In one line: {messages}",
    "preserve_count": 7,
}
"""The names that the spec gives its settings."""

TOML = "\n".join(f"{name} = {json.dumps(value)}" for name, value in OWN_NAMES.items())


def settings_of(daemon: Daemon, **start: Any) -> dict[str, tuple[Any, str]]:
    """(value, where it came from) of the spec's settings in a new session, by the contract's names."""
    session = daemon.call("session/start", **start)["session_id"]
    shown = daemon.call("session/configure", session_id=session)["settings"]
    names = {"preserve_count": "keep_messages"}
    return {name: tuple(shown[names.get(name, name)].values()) for name in OWN_NAMES}  # type: ignore[misc]


def from_layer(source: str) -> dict[str, tuple[Any, str]]:
    """Return what `settings_of` gives if all settings came from the layer `source`."""
    return {name: (value, source) for name, value in OWN_NAMES.items()}


def test_the_specs_names_count_at_the_start_of_a_session_and_later(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction=CHARS4)["session_id"]

    later = daemon.call("session/configure", session_id=session, compaction=OWN_NAMES)["settings"]

    assert settings_of(daemon, compaction=OWN_NAMES) == from_layer("session/start")
    assert later["keep_messages"] == {"value": 7, "source": "session/configure"}
    assert later["model_auto_compact_token_limit"]["value"] == 5000


def test_the_specs_names_count_in_an_editors_settings(tmp_path: Path) -> None:
    first = {"compaction": {**OWN_NAMES, "preserve_count": 3}}
    with Daemon(tmp_path / "home") as daemon:
        daemon.call("initialize", processId=None, capabilities={}, initializationOptions=first)
        daemon.notify("initialized")
        before = settings_of(daemon)
        daemon.notify("workspace/didChangeConfiguration", settings={"compaction": OWN_NAMES})
        after = settings_of(daemon)

    assert before["preserve_count"] == (3, "initializationOptions")
    assert after == from_layer("didChangeConfiguration")


def test_the_specs_names_count_in_the_environment(tmp_path: Path) -> None:
    env = {f"COMPACTD_{name.upper()}": str(value) for name, value in OWN_NAMES.items()}

    with Daemon(tmp_path / "home", env=env) as daemon:
        assert settings_of(daemon) == from_layer("environment")


def test_the_specs_names_count_in_the_workspaces_file_and_in_the_users(tmp_path: Path) -> None:
    config, work = tmp_path / "config" / "compactd", tmp_path / "work"
    config.mkdir(parents=True)
    work.mkdir()
    (config / "config.toml").write_text(f"[compaction]\n{TOML}\n", "utf-8")
    (work / ".compactd.toml").write_text("[compaction]\npreserve_count = 9\n", "utf-8")

    with Daemon(tmp_path / "home") as daemon:
        user_file = settings_of(daemon)
        both = settings_of(daemon, working_dir=str(work))

    assert user_file == from_layer("config.toml")
    assert both == {**from_layer("config.toml"), "preserve_count": (9, ".compactd.toml")}
