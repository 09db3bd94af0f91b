"""Claude Code's status line: exactly one line of output, for any input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.integrations.hooks.compact_threshold import BUFFER, compact_threshold
from compactd.integrations.hooks.statusline import Fill, line, status_line
from tests.support.agent_transcripts import Turn, past
from tests.support.examples import examples
from tests.support.hook_runs import Agent, ended, spawned
from tests.support.recorded_claude import RECORDINGS, needs_recordings

ID = "5c5cb639-aaaa"
WINDOW = {
    "total_input_tokens": 15_234,
    "total_output_tokens": 4_521,
    "context_window_size": 200_000,
    "used_percentage": 41,
    "remaining_percentage": 59,
    "current_usage": {
        "input_tokens": 140,
        "output_tokens": 1_200,
        "cache_creation_input_tokens": 2_000,
        "cache_read_input_tokens": 80_000,
    },
}
"""The input as documented for Claude Code 2.1.240."""


def shown(home: Path, **told: object) -> str:
    environ = {"COMPACTD_HOME": str(home / "data"), "HOME": str(home), "NO_COLOR": "1"}
    return line("claude-code", json.dumps({"session_id": ID, **told}).encode(), environ)


def test_the_fill_is_what_the_agent_tells(tmp_path: Path) -> None:
    assert shown(tmp_path, context_window=WINDOW) == "ctx 41 % · 82k/200k"


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        ({"total_cost_usd": 1.2345, "total_duration_ms": 7}, "ctx 41 % · 82k/200k · $1.23"),
        ({"total_cost_usd": 0.001}, "ctx 41 % · 82k/200k"),
        ({"total_cost_usd": -5}, "ctx 41 % · 82k/200k"),
        ({"total_cost_usd": "much"}, "ctx 41 % · 82k/200k"),
        (None, "ctx 41 % · 82k/200k"),
    ],
)
def test_the_cost_is_the_agents_own(tmp_path: Path, cost: object, text: str) -> None:
    assert shown(tmp_path, context_window=WINDOW, cost=cost) == text


def test_just_after_a_compaction_nobody_knows_the_fill(tmp_path: Path) -> None:
    empty = {**WINDOW, "current_usage": None, "used_percentage": None}

    assert shown(tmp_path, context_window=empty) == "ctx – · 200k"


def test_a_window_of_a_million_is_written_short(tmp_path: Path) -> None:
    assert shown(tmp_path, context_window={**WINDOW, "context_window_size": 1_000_000}) == "ctx 8 % · 82k/1M"


def test_an_older_agent_that_tells_no_fill_has_it_from_its_transcript(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past(3))
    with agent.session.path.open("ab") as file:
        file.write(
            b'{"type":"assistant","isSidechain":true,"message":{"usage":{"input_tokens":99999}}}\n{"cut'
        )

    text = shown(tmp_path, transcript_path=str(agent.session.path))

    assert text == "ctx ~9 % · 17k/200k?"


def test_the_turns_that_are_left_follow_from_the_turns_that_were(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    lines = []
    for used in (20_000, 30_000, 40_000):
        agent.prompt()
        usage = {"input_tokens": used}
        lines.append(shown(tmp_path, context_window={**WINDOW, "current_usage": usage}))

    left = (200_000 - BUFFER - 40_000) // 10_000
    assert lines[0] == "ctx 10 % · 20k/200k"
    assert lines[2] == f"ctx 20 % · 40k/200k · compacts in ~{left} turns"


def test_what_the_last_compaction_kept_is_shown_until_the_next(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past()).compact("Only apply_bankers_rounding is told of.")
    agent.prompt()

    first = shown(tmp_path, context_window=WINDOW)
    agent.session.say(Turn("assistant", "on it"))
    again = shown(tmp_path, context_window=WINDOW)

    assert first.startswith("ctx 41 % · 82k/200k · kept ")
    assert first.endswith(" with what was put back")
    assert again.partition("kept")[2] == first.partition("kept")[2]


def test_the_line_is_yellow_near_the_threshold_and_red_beyond_it() -> None:
    texts = [
        status_line(Fill(used=used, window=200_000, threshold=167_000), colour=True)
        for used in (80_000, 160_000, 170_000)
    ]

    assert texts == [
        "ctx 40 % · 80k/200k",
        "\x1b[33mctx 80 % · 160k/200k\x1b[0m",
        "\x1b[31mctx 85 % · 170k/200k · compacts next\x1b[0m",
    ]


@settings(deadline=None, max_examples=examples(100))
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=4,
    ),
    st.sampled_from(
        ["session_id", "transcript_path", "context_window", "size", "current_usage", "input_tokens"]
    ),
)
def test_no_field_of_another_kind_makes_it_fail(value: object, where: str) -> None:
    usage = {**WINDOW["current_usage"]}  # type: ignore[dict-item]
    window = {**WINDOW, "current_usage": usage}
    told = {"session_id": ID, "transcript_path": "/nowhere", "context_window": window}
    inside = {"size": (window, "context_window_size"), "current_usage": (window, where)}
    place, name = inside.get(where, (usage if where == "input_tokens" else told, where))
    place[name] = value  # type: ignore[index]

    text = line("claude-code", json.dumps(told).encode(), {"COMPACTD_HOME": "/nowhere", "NO_COLOR": "1"})

    assert "\n" not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("data", [b"", b"no json", b"[]", b"\xff", b'{"context_window":'])
def test_what_is_no_event_gives_an_empty_line(data: bytes) -> None:
    assert line("claude-code", data, {"COMPACTD_HOME": "/nowhere"}) == ""


def test_the_command_prints_one_line_and_succeeds(tmp_path: Path) -> None:
    told = json.dumps({"session_id": ID, "context_window": WINDOW}).encode()

    seen = [ended(spawned(tmp_path, "statusline", *agent), data) for agent, data in runs(told)]

    assert seen == [(0, "ctx 41 % · 82k/200k\n".encode(), b""), (0, b"\n", b""), (0, b"\n", b"")]


def runs(told: bytes) -> tuple[tuple[tuple[str, ...], bytes], ...]:
    return ((("claude-code",), told), (("claude-code",), b"no json"), ((), b""))


def played(home: Path, scenario: str, numbers: range, **environ: str) -> list[str]:
    """Return the lines for recorded input, with a hook at each prompt in between."""
    assert RECORDINGS is not None
    lines = []
    for number in numbers:
        data = (RECORDINGS / "2.1.330" / scenario / "statusline" / f"{number:03}.json").read_bytes()
        told = {"COMPACTD_HOME": str(home / "data"), "HOME": str(home), "NO_COLOR": "1", **environ}
        session_id = json.loads(data)["session_id"]
        here = {"cwd": str(home), "workspace": None, "cost": None}
        lines.append(line("claude-code", json.dumps({**json.loads(data), **here}).encode(), told))
        Agent("claude-code", home, session_id).prompt()
    return lines


@needs_recordings
def test_zeros_after_a_compaction_are_no_fill_and_no_beginning(tmp_path: Path) -> None:
    lines = played(tmp_path, "terminal-manual-then-auto", range(3))

    assert lines == [
        "ctx – · 200k",
        "ctx 15 % · 30k/200k",
        "ctx 86 % · 172k/200k · compacts next",
    ]


@needs_recordings
def test_the_window_that_the_user_set_is_counted(tmp_path: Path) -> None:
    lines = played(
        tmp_path, "terminal-window-100k-clear-fork", range(1, 5), CLAUDE_CODE_AUTO_COMPACT_WINDOW="100k"
    )

    assert lines == [
        "ctx 25 % · 50k/200k",
        "ctx 28 % · 55k/200k",
        "ctx 30 % · 60k/200k · compacts in ~1 turn",
        "ctx 35 % · 70k/200k · compacts next",
    ]


@pytest.mark.parametrize(
    ("environ", "settings", "threshold"),
    [
        ({}, {}, 167_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}, {}, 67_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100k"}, {"autoCompactWindow": 150_000}, 67_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "much"}, {}, 167_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1m"}, {}, 167_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, {}, 90_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "nan"}, {}, 167_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "99"}, {}, 167_000),
        ({}, {"autoCompactWindow": 100_000}, 67_000),
        ({}, {"autoCompactWindow": "auto"}, 167_000),
        ({}, {"autoCompactWindow": {"default": 1}}, 167_000),
        ({}, {"autoCompactEnabled": False}, None),
        ({}, {"autoCompactEnabled": True}, 167_000),
        ({"DISABLE_AUTO_COMPACT": "1"}, {}, None),
        ({"DISABLE_COMPACT": "false"}, {}, 167_000),
    ],
)
def test_the_users_settings_move_the_threshold(
    tmp_path: Path, environ: dict[str, str], settings: dict[str, object], threshold: int | None
) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))

    assert compact_threshold(200_000, {"HOME": str(tmp_path), **environ}, "") == threshold


def test_the_projects_settings_count_more_than_the_users(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for folder, size in ((tmp_path, 150_000), (project, 100_000)):
        (folder / ".claude").mkdir(parents=True)
        (folder / ".claude" / "settings.json").write_text(json.dumps({"autoCompactWindow": size}))
    (project / ".claude" / "settings.local.json").write_text("no json")

    assert compact_threshold(200_000, {"HOME": str(tmp_path)}, str(project)) == 67_000


def test_nothing_is_said_of_a_compaction_where_there_is_none(tmp_path: Path) -> None:
    environ = {"COMPACTD_HOME": str(tmp_path / "data"), "HOME": str(tmp_path), "DISABLE_AUTO_COMPACT": "1"}
    full = {**WINDOW, "current_usage": {"input_tokens": 190_000}}
    data = json.dumps({"session_id": ID, "context_window": full}).encode()

    assert line("claude-code", data, environ) == "\x1b[33mctx 95 % · 190k/200k\x1b[0m"


def test_a_model_that_goes_on_beyond_the_threshold_is_not_said_to_compact_next(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    lines = []
    for used in (150_000, 170_000, 170_000, 191_000, 192_000):
        agent.prompt()
        lines.append(shown(tmp_path, context_window={**WINDOW, "current_usage": {"input_tokens": used}}))

    assert ["compacts next" in line for line in lines] == [False, True, True, False, False]
    assert lines[-1] == "ctx 96 % · 192k/200k"
