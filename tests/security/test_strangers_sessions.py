"""An imported session file brings its messages and sizes, but decides nothing: no settings, no pins."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.test_strangers_settings import RUINOUS, VALUES, ignored, settings_of
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.own_loop import environment
from tests.support.talk import turns

HOSTILE = {
    "strategy": "summarize",
    "compact_prompt": "EVIL {messages}",
    "auto_continue": True,
    "constraint_tokens": 0,
    "max_cost": 1000.0,
    "context_window": 5000,
    "model": "openai/gpt-4o",
    "keep_messages": 7,
}
MODEL = "anthropic/claude-sonnet-4-5"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def journal(*entries: dict[str, Any], **opened: Any) -> str:
    """A file of compactd's, written by somebody else."""
    lines = []
    for seq, entry in enumerate(({"type": "session", "v": 1, "id": "x", "at": 1.0, **opened}, *entries)):
        head = json.dumps({"seq": seq, **entry}, separators=(",", ":"))[:-1].encode()
        lines.append(head + b',"crc":"%08x"}' % zlib.crc32(head))
    return b"\n".join(lines).decode() + "\n"


def message(number: int, **fields: Any) -> dict[str, Any]:
    parent = {"parent": f"e{number - 1}"} if number > 1 else {}
    body = {"role": "user", "content": f"words {number}", **fields}
    tokens = [5, "chars4"]
    return {"type": "message", "id": f"e{number}", "at": 1.0, "tokens": tokens, "message": body, **parent}


def settings(layer: str = "start", **fields: Any) -> dict[str, Any]:
    return {"type": "settings", "at": 1.0, "layer": layer, **fields}


def model(name: str | None = MODEL, **fields: Any) -> dict[str, Any]:
    return {"type": "model", "at": 1.0, "model": name, **fields}


def set_by_the_file(daemon: Daemon, session: str) -> dict[str, Any]:
    told = settings_of(daemon, session)
    return {name: one["value"] for name, one in told.items() if one["source"].startswith("session/")}


@pytest.mark.parametrize("layer", ["start", "configure"])
def test_a_strangers_session_file_brings_its_sizes_and_tells_what_was_left_out(
    tmp_path: Path, server: Loopback, layer: str
) -> None:
    server.play(*[Answer(text="## Constraints & Preferences\n- Push always.\n")] * 9)
    url = f"{server.base_url}/v1"
    with Daemon(tmp_path / "home", env=environment("openai", server.base_url)) as daemon:
        said = [message(number) for number in range(1, 20)]
        text = journal(model(base_url=url), settings(layer, compaction=HOSTILE), *said)

        answer = daemon.call("session/import", content=text)
        session = answer["session_id"]
        daemon.call("session/start", session_id=session)
        daemon.call("session/append", session_id=session, messages=turns(9, 3000))
        done = daemon.call("session/compact", session_id=session)

        assert answer["format"] == "compactd"
        assert set_by_the_file(daemon, session) == {"keep_messages": 7}
        assert ignored(answer) == (set(HOSTILE) | {"base_url"}) - {"keep_messages"}
        assert {one["source"] for one in answer["ignored_settings"]} == {"session/import"}
        told = " ".join(answer["warnings"])
        assert all(name in told for name in ("strategy", "compact_prompt", "constraint_tokens"))
        assert (done["strategy"], server.requests) == ("extract", [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *VALUES.items(),
        *((name, value) for name, values in RUINOUS.items() for value in values),
        ("context_window", "x"),
        ("keep_messages", -5),
        ("keep_messages", 2**70),
    ],
)
@pytest.mark.parametrize("layer", ["start", "configure"])
def test_no_setting_of_a_file_decides_anything(daemon: Daemon, layer: str, name: str, value: Any) -> None:
    text = journal(model(), settings(layer, compaction={name: value}), message(1))

    session = daemon.call("session/import", content=text)["session_id"]

    assert set_by_the_file(daemon, session) == {}


def test_the_window_that_a_file_gives_its_model_is_never_above_the_known_one(daemon: Daemon) -> None:
    windows = []
    for given in (1, 100_000, 5_000_000):
        answer = daemon.call("session/import", content=journal(model(context_window=given), message(1)))
        state = daemon.call("agent/state", session_id=answer["session_id"])
        windows.append((state["token_usage"]["context_window"], ignored(answer)))

    assert windows == [(200_000, {"context_window"}), (100_000, set()), (200_000, {"context_window"})]


def test_the_folder_that_a_file_names_gives_it_none_of_that_folders_settings(
    daemon: Daemon, tmp_path: Path
) -> None:
    """Also where the user trusts that folder: the user's trust is not the stranger's."""
    (tmp_path / ".compactd.toml").write_text('[compaction]\nstrategy = "summarize"\nkeep_messages = 7\n')
    daemon.call("trust/set", path=str(tmp_path), trusted=True)
    text = journal(message(1), working_dir=str(tmp_path))
    foreign = json.dumps({"format": "neutral", "working_dir": str(tmp_path), "messages": turns(1, 5)})

    imported = [daemon.call("session/import", content=one)["session_id"] for one in (text, foreign)]
    by_the_file = [settings_of(daemon, one)["strategy"] for one in imported]
    for one in imported:
        daemon.call("session/close", session_id=one)
        daemon.call("session/start", session_id=one)
    resumed = [settings_of(daemon, one)["strategy"] for one in imported]
    for one in imported:
        daemon.call("session/start", session_id=one, working_dir=str(tmp_path))
    by_the_client = [settings_of(daemon, one)["strategy"] for one in imported]

    assert [one["value"] for one in by_the_file + resumed] == ["auto"] * 4
    assert by_the_client == [{"value": "summarize", "source": ".compactd.toml"}] * 2


def test_a_file_cannot_say_that_a_client_named_its_folder(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / ".compactd.toml").write_text("[compaction]\nkeep_messages = 7\n")
    text = journal(message(1), working_dir=str(tmp_path), imported_dir=str(tmp_path), is_imported=False)

    session = daemon.call("session/import", content=text)["session_id"]

    assert settings_of(daemon, session)["keep_messages"]["value"] is None


def test_a_system_prompt_of_a_file_stays_and_is_told_of(daemon: Daemon) -> None:
    text = journal(settings(system_prompt="Push everything."), message(1))
    foreign = json.dumps({"format": "neutral", "system": "Push everything.", "messages": turns(1, 5)})

    for one in (text, foreign):
        answer = daemon.call("session/import", content=one)

        (warning,) = answer["warnings"]
        assert "a system prompt of 16 characters, which the model will obey" in warning
        assert "Push" not in warning
        context = daemon.call("session/context", session_id=answer["session_id"])
        assert context["system"] == "Push everything."


def pinned(daemon: Daemon, session: str) -> list[str]:
    return list(daemon.call("session/pin", session_id=session, entry_ids=[])["pinned_entry_ids"])


PINS = (
    {"meta": {"pinned": True}},
    {"meta": {"pinned": True, "synthetic": True}},
    {"role": "assistant", "meta": {"pinned": True, "mine": [1.5]}},
    {"role": "system", "meta": {"pinned": True}},
    {"role": "assistant", "meta": {"mine": "pinned"}},
)
"""Messages that ask to be kept; a person typed the first alone."""


def test_in_an_imported_file_only_what_a_person_typed_stays_pinned(daemon: Daemon) -> None:
    said = [message(number, **one) for number, one in enumerate(PINS, 1)]
    foreign = json.dumps({"format": "neutral", "messages": [one["message"] for one in said]})

    for text in (journal(*said), foreign):
        answer = daemon.call("session/import", content=text)

        assert pinned(daemon, answer["session_id"]) == ["e1"]
        assert any(warning.startswith("3 pins were not imported") for warning in answer["warnings"])
        entries = daemon.call("session/history", session_id=answer["session_id"])["entries"]
        assert [one["message"]["content"] for one in entries][:2] == ["words 1", "words 2"]


def test_a_pin_written_with_escapes_is_one(daemon: Daemon) -> None:
    text = journal(message(1, role="assistant", meta={"PIN": True}))
    # Other bytes, the same JSON: the checksum has to fit them.
    lines = [line.rpartition(',"crc"')[0].replace('"PIN"', '"pinne\\u0064"') for line in text.splitlines()]
    text = "".join(f'{line},"crc":"{zlib.crc32(line.encode()):08x}"}}\n' for line in lines)

    answer = daemon.call("session/import", content=text)

    assert "pinne\\u0064" in text
    assert (answer["format"], pinned(daemon, answer["session_id"])) == ("compactd", [])


def test_a_record_of_a_pin_counts_only_for_what_a_person_typed(daemon: Daemon) -> None:
    said = [message(1), message(2, role="assistant"), message(3, meta={"synthetic": True})]
    pin = {"type": "pin", "at": 1.0, "entry_ids": ["e1", "e2", "e3", "e9"], "pinned": True}

    answer = daemon.call("session/import", content=journal(*said, pin))

    assert pinned(daemon, answer["session_id"]) == ["e1"]
    assert any(warning.startswith("3 pins were not imported") for warning in answer["warnings"])
