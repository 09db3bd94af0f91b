"""`compactd inspect FILE`, as a person and as a program sees it."""

from __future__ import annotations

import json
import re

import pytest

from compactd.cli.inspect.anatomy import PARTS
from compactd.cli.inspect.bar import FREE, MARK
from compactd.cli.inspect.bar import PARTS as BAR_PARTS
from compactd.cli.inspect.context import NOT_IN_FILE
from compactd.client import Client
from tests.support import session_files as files
from tests.support.command_line import ANSI, TERMINAL, run, run_each
from tests.support.session_files import answered, asked, claude_code, filler, got, reported, text, used


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def ledger_session(path):
    """Four turns that grow by 20,000 reported tokens each; two files are read, one command fails."""
    big = filler(3_000)
    records = [
        asked("Check the ledger. Never touch bank.toml."),
        answered(1, used("t1", "Read", file_path="/home/someone/ledger/big.py"), usage=reported(12_000)),
        got("t1", big),
        answered(2, text("Read."), usage=reported(20_000, cached=12_000)),
        asked("Now run the tests."),
        answered(3, used("t2", "Bash", command="pytest -x"), usage=reported(32_000, cached=20_000)),
        got("t2", "1 failed: " + filler(1_000), is_error=True),
        answered(4, text("One failed."), usage=reported(40_000, cached=32_000)),
        asked("Read it again."),
        answered(5, used("t3", "Read", file_path="/home/someone/ledger/big.py"), usage=reported(52_000)),
        got("t3", big),
        answered(6, text("Same."), usage=reported(60_000, cached=52_000)),
        asked("And the small one."),
        answered(7, used("t4", "Read", file_path="/home/someone/ledger/small.py"), usage=reported(72_000)),
        got("t4", "x = 1"),
        answered(8, text("Done."), usage=reported(80_000, cached=72_000)),
    ]
    return claude_code(path, records)


@pytest.fixture(scope="module")
def file(home):
    return ledger_session(home / "ledger.jsonl")


@pytest.fixture(scope="module")
def ledger(home, file):
    return run_each(home, ("inspect", file), ("inspect", file, "--json"))


@pytest.fixture(scope="module")
def terminal(home, file):
    return run(home, "inspect", file, env=TERMINAL)


def test_the_size_says_what_was_measured_and_what_is_estimated(ledger) -> None:
    text, data = ledger

    assert (text.code, text.err) == (0, "")
    assert text.lines[-1].startswith("a compaction now would free ")
    line = next(line for line in text.lines if line.startswith("used"))
    assert re.fullmatch(
        r"used +80,0\d\d   measured: .* report of message 16 \(80,000\) \+ \d+ estimated after it",
        line,
    )
    assert data.json["used"]["reported"] == 80_000
    assert data.json["used"]["report_message"] == 16


def test_the_window_names_its_model_its_source_and_how_sure_that_is(ledger) -> None:
    text, data = ledger

    line = next(line for line in text.lines if line.startswith("window"))
    assert re.match(r"window +200,000   registry: anthropic/claude-opus-4-5, fact \(.+\)$", line)
    assert (data.json["window"]["tokens"], data.json["window"]["confidence"]) == (200_000, "fact")


def test_a_context_that_grows_by_a_turn_says_in_how_many_it_is_compacted(ledger) -> None:
    text, data = ledger

    # 160,000 is due; 80,020 are used; each turn adds 20,000.
    line = (
        r"^compactd +160,000   the size at which compactd would compact, in about 4 turns at 20,000 tokens"
        r" per turn \("
    )
    assert re.search(line, text.out, re.M)
    # Another agent compacts by its own rule.
    assert re.search(r"^agent +~167,000   the size at which Claude Code itself compacts$", text.out, re.M)
    assert data.json["compacts"]["by"] == "compactd"
    assert data.json["compacts"]["forecast"] == {"steps": 4, "unit": "turn", "tokens_each": 20_000}


def test_the_cost_is_that_of_the_reports_at_the_registrys_prices(ledger) -> None:
    text, data = ledger

    # $5 in, $25 out, $0.50 from the cache for a million (claude-opus-4-5, registry of 2026-09)
    cached = 12_000 + 20_000 + 32_000 + 52_000 + 72_000
    fresh = sum((12, 20, 32, 40, 52, 60, 72, 80)) * 1_000 - cached
    dollars = (fresh * 5 + cached * 0.5 + 8 * 10 * 25) / 1_000_000
    assert data.json["cost"]["dollars"] == pytest.approx(dollars)
    assert f"${dollars:.2f}   by 8 usage reports in the file, 51 % of input from cache" in text.out


def test_the_cost_counts_each_request_once_at_the_price_of_its_own_model_as_usage_does(home) -> None:
    lasting = {
        "cache_creation_input_tokens": 100_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 100_000},
    }
    first = answered(1, text("Read."), usage={**reported(40_000), **lasting})
    small = answered(2, text("A sub-agent's."), usage=reported(1_000_000))
    small["message"]["model"] = "claude-haiku-4-5-20251001"
    file = claude_code(
        home / "models.jsonl", [asked("Check it."), first, first, {**small, "isSidechain": True}]
    )

    shown, data, usage = run_each(
        home, ("inspect", file), ("inspect", file, "--json"), ("usage", file, "--json")
    )

    # $5 in, twice that for what stays in the cache for an hour, $25 out; claude-haiku-4-5: $1 in, $5 out
    dollars = (40_000 * 5 + 100_000 * 10 + 10 * 25 + 1_000_000 * 1 + 10 * 5) / 1_000_000
    assert data.json["cost"]["dollars"] == pytest.approx(dollars)
    assert usage.json["total"]["cost_usd"] == pytest.approx(dollars)
    assert f"${dollars:.2f}   by 2 usage reports of 2 models in the file, 0 % of input" in shown.out


def test_the_largest_entries_say_which_tool_on_what_and_what_is_odd_about_them(ledger) -> None:
    text, data = ledger

    first, second, third = data.json["largest"][:3]
    assert [first["kind"], first["what"], first["note"]] == [
        "tool result",
        "Read big.py",
        "read 2 times, last in turn 3",
    ]
    assert (first["turn"], second["turn"]) == (1, 3)
    assert [third["what"], third["note"], third["failed"]] == ["Bash pytest -x", "failed", True]
    assert re.search(r"^tool result +[\d,]+ +1  Read big.py   read 2 times, last in turn 3$", text.out, re.M)
    assert len(data.json["largest"]) == 10


def test_the_parts_add_up_to_what_is_used(ledger) -> None:
    _, data = ledger

    parts = data.json["parts"]
    used = data.json["used"]["tokens"]
    assert sum(parts.values()) == used
    # Two files of some 4,500 tokens and a few words: all else of the report is not in the file.
    assert parts["not_in_file"] == used - sum(parts[name] for name in parts if name != "not_in_file")
    assert used - 11_000 < parts["not_in_file"] < used - 9_000


def test_the_growth_is_told_turn_by_turn(ledger) -> None:
    text, data = ledger

    assert data.json["growth"] == {
        "measured": True,
        "sizes": [{"turn": turn, "tokens": 20_000 * turn + 10} for turn in (1, 2, 3, 4)],
        "compactions": [],
    }
    assert "growth    20,010 40,010 60,010 80,010 tokens\n" in text.out


def test_a_pipe_gets_no_bars_and_a_terminal_no_line_that_is_too_long(ledger, terminal) -> None:
    pipe, _ = ledger

    assert not set(pipe.out) & set("▐█▓▒░▌│▁▂▃▄▅▆▇\x1b")
    lines = [ANSI.sub("", line) for line in terminal.lines]
    assert max(map(len, lines)) <= 80
    assert re.fullmatch(r"▐█+░+·+│·+▌  40 %", lines[0])
    assert lines[0].index("│") == lines[1].index("↑")
    assert lines[1].endswith("compactd compacts at 80 % ↑")
    assert lines[2].startswith(" █ system prompt and tools (not in the file) 35 %   ░ results ")
    assert any(re.fullmatch(r"growth    [▁▂▃▄▅▆▇█]{4}", line) for line in lines)


def test_only_what_needs_attention_has_a_colour(home, file, terminal) -> None:
    due, over, guess = (
        run(home, "inspect", file, *options, env=TERMINAL)
        for options in (("--window", "90k"), ("--window", "60k"), ("--model", "nobody/knows-this"))
    )

    def coloured(seen) -> list[str]:
        return [f"{line[2:4]} {ANSI.sub('', line)[:8].strip()}" for line in seen.lines if line[:2] == "\x1b["]

    assert coloured(terminal) == ["31 open err", "31 tool res"]
    assert [line for line in coloured(due) if "compactd" in line] == ["33 compactd"]
    assert [line for line in coloured(over) if "compactd" in line] == ["31 compactd"]
    assert "33 window" in coloured(guess)
    assert "due: before the next request" in due.words
    assert "over: the next request does not fit any more" in over.words
    assert "128,000? a guess: nobody/knows-this is not in the registry" in guess.words
    assert "~63 %" in guess.words


def test_what_was_compacted_away_before_is_not_in_the_context(home) -> None:
    summary = {"isCompactSummary": True}
    records = [
        asked("First."),
        answered(1, text(filler(4_000)), usage=reported(90_000)),
        asked("Second."),
        answered(2, text("Done."), usage=reported(120_000)),
        asked("This session is being continued.", **summary),
        asked("Third."),
        answered(3, text("Done too."), usage=reported(11_000)),
    ]

    seen = run(home, "inspect", claude_code(home / "twice.jsonl", records), "--json").json

    assert (seen["session"]["messages"], seen["session"]["messages_in_context"]) == (7, 3)
    assert (seen["session"]["compactions"], seen["growth"]["compactions"]) == (1, [2])
    assert 11_000 <= seen["used"]["tokens"] < 11_100
    assert max(entry["tokens"] for entry in seen["largest"]) < 100


def test_without_a_report_everything_is_an_estimate_and_a_system_message_counts_as_system(home) -> None:
    file = files.openai(home / "plain.json", 3, system="Be exact. " * 100)

    text, data = run_each(home, ("inspect", file), ("inspect", file, "--json"))

    assert "estimated from the text: the file contains no provider's report of this context" in text.out
    assert (data.json["session"]["messages"], data.json["used"]["source"]) == (12, "estimated")
    assert data.json["parts"]["system"] >= 200
    assert sum(data.json["parts"].values()) == data.json["used"]["tokens"]


def test_what_a_compaction_would_do_is_told_and_nothing_is_done(home) -> None:
    file = files.openai(home / "preview.json", 40, words=180)
    before = file.read_bytes()

    what, data = run_each(home, ("inspect", file, "--what"), ("inspect", file, "--what", "--json"))

    plan = data.json["compaction"]
    assert plan["exact"] is True
    free = f"a compaction now would free {plan['tokens_saved']:,} tokens"
    assert plan["compacted"] is True
    assert f"{free}: {plan['tokens_before']:,} → {plan['tokens_after']:,}\n" in what.out
    assert f"  removes {plan['messages_removed']:,} messages, replaced by a summary (extract)\n" in what.out
    assert f"word for word from turn {plan['turns']['kept_from']} on" in what.out
    assert file.read_bytes() == before


def test_what_it_frees_at_least_is_known_without_making_the_summary(home) -> None:
    file = files.openai(home / "least.json", 40, words=180)

    text, quick, exact = run_each(
        home,
        ("inspect", file),
        ("inspect", file, "--json"),
        ("inspect", file, "--what", "--json"),
    )

    least, made = quick.json["compaction"], exact.json["compaction"]
    assert (
        text.lines[-1]
        == f"a compaction now would free at least {least['tokens_saved']:,} tokens (--what shows it)"
    )
    assert (least["exact"], least["summary"]) == (False, "")
    assert 0 < least["tokens_saved"] <= made["tokens_saved"]
    for same in ("messages_removed", "kept_messages", "pinned_entry_ids", "first_kept_entry_id", "turns"):
        assert least[same] == made[same], same


def test_a_journal_of_ours_is_shown_as_its_session_stands(home) -> None:
    env = {"COMPACTD_HOME": str(home / "own"), "PATH": "/usr/bin:/bin"}
    usage = {"input_tokens": 50_000, "output_tokens": 5}
    with Client(env=env) as client:
        tools = [{"name": "read", "description": "reads " * 200, "input_schema": {"type": "object"}}]
        client.call(
            "session/start",
            {
                "session_id": "mine",
                "model": "anthropic/claude-opus-4-5",
                "system_prompt": "Be exact.",
                "tools": tools,
            },
        )
        messages = [{"role": "user", "content": "Go. "}, {"role": "assistant", "content": filler(8_000)}] * 8
        client.call("session/append", {"session_id": "mine", "messages": messages, "usage": usage})
        result = client.call("session/compact", {"session_id": "mine", "keep_messages": 2})
        context = client.call("session/context", {"session_id": "mine"})
    (journal,) = (home / "own" / "sessions").glob("*.jsonl")

    seen = run(home, "inspect", journal, "--json").json

    assert result["compacted"] is True
    assert (seen["session"]["id"], seen["session"]["format"]) == ("mine", "compactd")
    assert (seen["session"]["messages"], seen["session"]["compactions"]) == (16, 1)
    assert seen["session"]["messages_in_context"] == result["messages_after"]
    # The report is of the context before the compaction: it measures this one no more.
    assert (seen["used"]["source"], seen["used"]["tokens"]) == ("estimated", context["tokens"])
    assert seen["parts"]["tools"] > 200
    assert seen["parts"]["summary"] > 0
    assert seen["growth"]["compactions"] == [8]


def test_if_a_compaction_would_free_nothing_a_target_that_would_is_named_and_does(home) -> None:
    records = [asked("Look through the whole ledger.")]
    for number in range(1, 30):
        records.append(answered(number, used(f"c{number}", "Bash", command=f"page {number}")))
        records.append(got(f"c{number}", filler(300)))
    file = claude_code(home / "one-turn.jsonl", records)

    seen = run(home, "inspect", file)
    hint = re.search(r"`compactd compact FILE --target (\d+k)` would free at least ([\d,]+)", seen.out)

    assert hint is not None, seen
    done = run(home, "compact", file, "--target", hint[1], "--json").json
    assert done["compacted"] is True
    assert done["tokens_saved"] >= int(hint[2].replace(",", ""))


def test_each_kind_has_a_sign_of_its_own_and_a_calm_colour() -> None:
    signs = [part.sign for part in BAR_PARTS]

    assert len({*signs, FREE, MARK}) == len(signs) + 2
    assert not {part.style for part in BAR_PARTS} & {"", "red", "yellow"}
    assert {part.name for part in BAR_PARTS} == {*PARTS, NOT_IN_FILE}


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 120])
def test_the_bar_reads_at_any_width(home, file, columns) -> None:
    seen = run(home, "inspect", file, env={**TERMINAL, "NO_COLOR": "1", "COLUMNS": str(columns)})

    lines = [ANSI.sub("", line) for line in seen.lines]
    head = lines[: lines.index("")]
    assert max(map(len, head)) <= columns
    assert head[0].index("│") == head[1].index("↑")
    assert f"{80 if columns < 40 else 'compactd compacts at 80'} %" in head[1]
    for sign, name in {"█": "system", "░": "results", "@": "user", "·": "free"}.items():
        assert any(f" {sign} {name}" in line for line in head[2:]), name
    assert columns < 40 or max(map(len, lines)) <= columns
    used, window = (
        next(at for at, line in enumerate(lines) if line.startswith(label)) for label in ("used", "window")
    )
    assert columns < 40 or all(line.startswith("    ") for line in lines[used + 1 : window])
    assert "\x1b[3" not in seen.out


def test_tools_of_mcp_servers_and_memory_files_are_parts_of_their_own(home) -> None:
    talk = [
        {"role": "user", "content": f"<system-reminder>\n# claudeMd\n{filler(200)}\n</system-reminder>"},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Done."},
    ]
    schema = {"type": "object", "properties": {}}
    tools = [
        {"name": name, "description": filler(50), "input_schema": schema}
        for name in ("Read", "mcp__jira__search", "mcp__jira__create")
    ]
    document = home / "request.json"
    document.write_text(json.dumps({"system": "Be exact.", "tools": tools, "messages": talk}))
    rollout = home / "rollout.jsonl"
    agents = "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\nBe exact.\n</INSTRUCTIONS>"
    rollout.write_text(
        "".join(
            json.dumps({"timestamp": "2026-11-27T10:00:00Z", "type": kind, "payload": payload}) + "\n"
            for kind, payload in (
                ("session_meta", {"id": "s", "cwd": "/work", "base_instructions": {"text": filler(90)}}),
                ("response_item", message("user", agents)),
                ("response_item", message("user", "Go.")),
                ("response_item", message("assistant", "Done.")),
            )
        )
    )

    request, codex, text = run_each(
        home,
        ("inspect", document, "--json"),
        ("inspect", rollout, "--json"),
        ("inspect", rollout),
    )

    parts = request.json["parts"]
    assert 1.8 < parts["mcp_tools"] / parts["tools"] < 2.2
    assert parts["memory_files"] > 100 > parts["user"] > 0
    told = codex.json["parts"]
    assert (told["system"] > 80, told["memory_files"] > 10, 0 < told["user"] < 5) == (True, True, True)
    assert re.search(r"^memory file +\d+ +- ? *# AGENTS.md instructions for /work", text.out, re.M)


def test_what_a_user_typed_is_no_memory_file(home) -> None:
    file = home / "typed.json"
    file.write_text(json.dumps([{"role": "user", "content": "Write # AGENTS.md instructions for /x."}]))

    parts = run(home, "inspect", file, "--json").json["parts"]

    assert parts["memory_files"] == 0 < parts["user"]


def message(role: str, words: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
