"""What a session file says about its context window, as shown by all commands and by an imported session."""

from __future__ import annotations

import json

import pytest

from compactd.client import Client
from compactd.integrations.hooks.statusline import line
from tests.support.command_line import run, run_each
from tests.support.session_files import answered, asked, claude_code, pi, reported, text, write_lines

OPUS = "claude-opus-4-6"
USUAL = 200_000
"""The window that Claude Code gives this model unless the user chooses a larger one."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def opus(number, tokens):
    record = answered(number, text("Done."), usage=reported(tokens))
    return {"message": {**record["message"], "model": OPUS}}


def boundary(tokens, trigger="auto"):
    """Claude Code's own note of a compaction; the summary follows it."""
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "message": {"role": "system"},
        "compactMetadata": {"trigger": trigger, "preTokens": tokens},
    }


def compacted_at(path, tokens, *, size=166_000, trigger="auto", after=60_000):
    return claude_code(
        path,
        [
            asked("Check the ledger."),
            opus(1, size - 40_000),
            asked("Go on."),
            opus(2, size),
            boundary(tokens, trigger),
            asked("This session is being continued: the ledger was checked.", isCompactSummary=True),
            opus(3, after),
        ],
    )


def test_an_automatic_compaction_in_the_file_beats_the_registrys_fact_everywhere(home) -> None:
    file = compacted_at(home / "auto.jsonl", 167_117)

    text, data, watch, line, compact = run_each(
        home,
        ("inspect", file),
        ("inspect", file, "--json"),
        ("watch", file, "--once", "--json"),
        ("watch", file, "--once"),
        ("compact", file, "--json"),
    )

    window = data.json["window"]
    assert (window["tokens"], window["confidence"], window["estimated"]) == (200_000, "observed", True)
    assert "compacted automatically at 167,117 tokens" in window["source"]
    assert "says 1,000,000 (fact)" in window["source"]
    row = next(one for one in text.lines if one.startswith("window"))
    assert row.startswith(
        "window     ~200,000   estimated from the file: Claude Code compacted automatically at"
    )
    assert "the size at which compactd would compact" in text.out
    assert "~167,000   the size at which Claude Code itself compacts" in text.out
    assert (watch.json["window"], watch.json["window_confidence"]) == (200_000, "observed")
    assert line.out.startswith("ctx ~30 % · 60k/~200k")
    assert (compact.json["context"]["window"], compact.json["context"]["window_confidence"]) == (
        200_000,
        "observed",
    )


def test_the_status_line_takes_the_window_of_the_transcript_if_the_agent_names_none(home) -> None:
    """A window of a million: Claude Code compacts 33,000 tokens below it."""
    file = compacted_at(home / "status.jsonl", 967_117, size=966_000)
    event = json.dumps({"session_id": "s", "transcript_path": str(file)}).encode()
    named = json.dumps(
        {"session_id": "s", "transcript_path": str(file), "context_window": {"context_window_size": 300_000}}
    ).encode()

    environ = {"COMPACTD_HOME": str(home / "data"), "HOME": str(home), "NO_COLOR": "1"}

    unknown, known = (line("claude-code", one, environ) for one in (event, named))

    assert "/1M?" in unknown
    assert known == "ctx – · 300k"


def test_a_compaction_that_the_person_asked_for_tells_nothing_of_the_window(home) -> None:
    file = compacted_at(home / "manual.jsonl", 142_431, size=241_000, trigger="manual")

    window = run(home, "inspect", file, "--json").json["window"]

    assert (window["tokens"], window["confidence"], window["estimated"]) == (1_000_000, "fact", False)


def test_the_window_that_claude_code_gives_the_model_counts_until_a_larger_request_was_accepted(home) -> None:
    small = claude_code(home / "small.jsonl", [asked("Check the ledger."), opus(1, 30_000)])
    large = claude_code(home / "large.jsonl", [asked("Check the ledger."), opus(1, 230_000)])
    of_pi = pi(home / "of-pi.jsonl", 1)

    seen, text, other, foreign = run_each(
        home,
        ("inspect", small, "--json"),
        ("inspect", small),
        ("inspect", large, "--json"),
        ("inspect", of_pi, "--json"),
    )

    window = seen.json["window"]
    assert (window["tokens"], window["confidence"], window["estimated"]) == (200_000, "observed", True)
    assert "Claude Code gives this model 200,000 tokens unless you choose more" in window["source"]
    assert "~167,000   the size at which Claude Code itself compacts" in text.out
    assert (other.json["window"]["tokens"], other.json["window"]["confidence"]) == (1_000_000, "fact")
    assert "Claude Code" not in foreign.json["window"]["source"]


def test_the_size_at_which_claude_code_compacts_is_by_the_users_settings(home) -> None:
    file = compacted_at(home / "settings.jsonl", 167_117)
    chosen = home / "chosen"
    (chosen / ".claude").mkdir(parents=True)
    (chosen / ".claude" / "settings.json").write_text('{"autoCompactEnabled": false}')

    by_variable = run(home, "inspect", file, env={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100k"})
    by_settings = run(chosen, "inspect", file)

    assert "~67,000   the size at which Claude Code itself compacts, by your settings" in by_variable.out
    assert "never   Claude Code's automatic compaction is off in your settings" in by_settings.out


def test_what_you_say_of_the_window_beats_the_file(home) -> None:
    file = compacted_at(home / "said.jsonl", 167_117)

    seen = run(home, "inspect", file, "--window", "500k", "--json").json

    assert (seen["window"]["tokens"], seen["window"]["confidence"]) == (500_000, "override")


@pytest.mark.parametrize("tokens", [1, 5_000_000, 10**18])
def test_a_forged_number_is_told_and_not_believed(home, tokens) -> None:
    file = compacted_at(home / f"forged-{tokens}.jsonl", tokens)

    data, watch = run_each(home, ("inspect", file, "--json"), ("watch", file, "--once", "--json"))

    assert (data.json["window"]["tokens"], data.json["window"]["confidence"]) == (USUAL, "observed")
    assert watch.json["window"] == USUAL
    assert any(f"{tokens:,} tokens, which does not count" in one for one in data.json["warnings"])


def test_a_compaction_under_another_model_tells_nothing_of_the_one_in_force(home) -> None:
    file = claude_code(
        home / "switched.jsonl",
        [
            asked("Check the ledger."),
            answered(1, text("Done."), usage=reported(66_000)),
            boundary(67_012),
            asked("This session is being continued.", isCompactSummary=True),
            opus(2, 60_000),
            asked("Go on."),
            opus(3, 70_000),
        ],
    )

    window = run(home, "inspect", file, "--json").json["window"]

    assert (window["tokens"], window["confidence"]) == (USUAL, "observed")


def test_a_long_file_that_is_read_from_its_end_shows_the_same_window(home) -> None:
    before, after = (
        [one for number in range(count) for one in (asked("x " * 50_000), opus(100 * count + number, size))]
        for count, size in ((20, 150_000), (60, 60_000))
    )
    middle = [opus(1, 166_000), boundary(167_117), asked("Continued.", isCompactSummary=True)]
    file = claude_code(home / "long.jsonl", [*before, *middle, *after])
    assert file.stat().st_size > 7_000_000

    assert run(home, "watch", file, "--once", "--json").json["window"] == 200_000


def codex(path, limit, reasoning=0):
    """A rollout of Codex CLI with its own limit, and reasoning that only OpenAI can read."""
    secret = "Ab3" * 8_000

    def row(kind, **payload):
        return {"timestamp": "2026-01-02T03:04:05Z", "type": kind, "payload": payload}

    info = {"last_token_usage": {"input_tokens": 20_000, "output_tokens": 9}, "model_context_window": limit}
    return write_lines(
        path,
        [
            row("session_meta", id="s1", cwd="/home/someone", model_provider="openai"),
            row("turn_context", model="gpt-5", cwd="/home/someone"),
            row("response_item", type="message", role="user", content=[{"type": "input_text", "text": "A"}]),
            *[row("response_item", type="reasoning", summary=[], encrypted_content=secret)] * reasoning,
            row(
                "response_item",
                type="message",
                role="assistant",
                content=[{"type": "output_text", "text": "Done."}],
            ),
            *([row("event_msg", type="token_count", info=info)] if limit else []),
        ],
    )


def test_the_agents_own_limit_in_the_file_beats_the_registry(home) -> None:
    seen, watch = run_each(
        home,
        ("inspect", codex(home / "codex.jsonl", 258_400), "--json"),
        ("watch", home / "codex.jsonl", "--once", "--json"),
    )

    window = seen.json["window"]
    assert (window["tokens"], window["confidence"], window["estimated"]) == (258_400, "observed", False)
    assert window["source"].startswith("the context limit that the agent recorded in the file (258,400); ")
    assert watch.json["window"] == 258_400


def test_encrypted_reasoning_is_its_own_part_and_counted_as_its_agent_does(home) -> None:
    file = codex(home / "reasoning.jsonl", 0, reasoning=20)

    parts = run(home, "inspect", file, "--json").json["parts"]

    # (24,000 characters × ¾ − 650) ÷ 4, for each of twenty
    assert parts["reasoning"] == 20 * 4_338
    assert parts["text"] < 10


def test_a_guessed_window_is_never_followed_by_a_flat_statement(home) -> None:
    record = {"role": "user", "content": "The ledger is right, and every column adds up. " * 20_000}
    file = home / "nameless.json"
    file.write_text(json.dumps([record]))

    text, watch, page = run_each(
        home,
        ("inspect", file),
        ("watch", file, "--once"),
        ("inspect", file, "--html", home / "nameless.html"),
    )

    said = "if the window is 128,000 (a guess), the next request does not fit"
    assert said in text.out
    assert said in (home / "nameless.html").read_text()
    assert "if that guess is right, the next request does not fit" in watch.out
    assert "over:" not in text.out + watch.out + page.out


def test_an_imported_session_has_the_window_of_its_file_and_teaches_no_other(home) -> None:
    env = {"COMPACTD_HOME": str(home / "own"), "PATH": "/usr/bin:/bin"}
    file = compacted_at(home / "import.jsonl", 167_117)
    with Client(env=env) as client:
        session_id = client.call("session/import", {"path": str(file)})["session_id"]
        state = client.call("agent/state", {"session_id": session_id})
        client.call("session/start", {"session_id": "other", "model": OPUS})
        other = client.call("agent/state", {"session_id": "other"})
    with Client(env=env) as client:
        again = client.call("session/start", {"session_id": session_id})
        stored = client.call("agent/state", {"session_id": session_id})

    assert again["session_id"] == session_id
    for one in (state, stored):
        assert one["token_usage"]["context_window"] == 200_000
        assert one["token_usage"]["context_window_confidence"] == "observed"
        source = one["budget"]["window"]["source"]
        assert "compacted automatically at 167,117 tokens; the registry says 1,000,000 (fact)" in source
    assert other["token_usage"]["context_window"] == 1_000_000
