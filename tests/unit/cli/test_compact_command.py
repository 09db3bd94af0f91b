"""`compactd compact FILE`, as a person and as a program sees it."""

from __future__ import annotations

import json
import re

import pytest

from tests.support import session_files
from tests.support.command_line import ANSI, TERMINAL, Ended, run, run_each
from tests.support.pastes import LOG

NUMBERS = re.compile(
    r"✓ Compacted (?P<removed>[\d,]+) messages\n"
    r"  Tokens: (?P<before>[\d,]+) → (?P<after>[\d,]+) \(saved (?P<saved>[\d,]+)\)\n"
)


def numbers(seen: Ended) -> dict[str, int]:
    found = NUMBERS.match(seen.out)
    assert found is not None, seen
    return {name: int(text.replace(",", "")) for name, text in found.groupdict().items()}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def long(home):
    return session_files.openai(home / "long.json", 24)


@pytest.fixture(scope="module")
def pipe(home, long) -> Ended:
    return run(home, "compact", long, "--target", "8k")


def test_it_prints_first_how_many_messages_went_and_what_that_saved(home, long, pipe) -> None:
    data = run(home, "compact", long, "--target", "8k", "--json")

    seen, result = numbers(pipe), data.json
    assert (pipe.code, data.code, pipe.err, data.err) == (0, 0, "", "")
    assert seen["before"] - seen["after"] == seen["saved"] > 0
    assert seen["after"] <= 8_000
    assert seen == {
        "removed": result["messages_removed"],
        "before": result["tokens_before"],
        "after": result["tokens_after"],
        "saved": result["tokens_saved"],
    }
    assert (result["compacted"], result["messages_before"]) == (True, 96)
    assert result["session"]["messages"] == 96


def test_what_it_says_of_the_compaction_follows_before_the_summary(pipe) -> None:
    head, _, rest = pipe.out.partition("\n\n## Goal\n")

    labels = [line.split()[0] for line in head.splitlines()[3:]]
    assert labels == ["session", "covers", "model", "how", "messages", "of", "kept"]
    assert "session   long.json · OpenAI messages · 96 messages" in head
    assert "how       extract, no model · " in head
    assert re.search(r"of that   system \d+ is not conversation and stays", head)
    assert "- Step 1:" in rest or "bank.toml" in rest
    assert "<read-files>" in rest
    assert rest.endswith("nothing was written; --output FILE writes the compacted session\n")


def test_a_pasted_request_is_condensed_in_the_output_too(home) -> None:
    paste = {"role": "user", "content": f"Mend it. Never touch a.py.\n\n{LOG * 9}\nWhy?"}
    said = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done. " * 99}, paste]
    source, target = home / "pasted.jsonl", home / "condensed.json"
    source.write_text("".join(f"{json.dumps(message)}\n" for message in said))

    seen = run(home, "compact", source, "--target", "3k", "--output", target)

    written = json.loads(target.read_text())[-1]
    assert "\nmessages  3 → 3, 2 of them kept word for word, the newest request condensed\n" in seen.out
    assert written["content"].startswith("Mend it. Never touch a.py.\n\n> 2026-11-27")
    assert written["content"].endswith("\nWhy?")
    assert len(written["content"]) < len(paste["content"]) // 4


def test_a_window_that_nobody_knows_is_a_guess_and_one_that_was_given_is_not(home, long, pipe) -> None:
    given = run(home, "compact", long, "--keep-messages", 6, "--window", "64k", "--strategy", "truncate")

    assert "window 128,000? (a guess; set it with --model ID or --window N)" in pipe.out
    assert "window 64,000 (given by you)" in given.out
    assert "how       truncate, no model" in given.out
    assert "[Compacted " in given.out


def test_what_is_within_the_tokens_to_keep_is_not_compacted_and_ends_with_3(home) -> None:
    file = session_files.openai(home / "short.json", 2, system=None)

    text, data = run_each(
        home, ("compact", file, "--keep-recent", "16k"), ("compact", file, "--keep-recent", "16k", "--json")
    )

    assert (text.code, text.err) == (3, "")
    assert text.lines == [
        "No compaction needed: all 8 messages are within the 16,000 tokens to keep",
        "To compact nevertheless, keep less: --keep-messages 2",
    ]
    assert (data.code, data.json["compacted"], data.json["tokens_saved"]) == (3, False, 0)


def test_a_target_above_the_messages_names_what_the_file_leaves_out_and_a_smaller_target(home) -> None:
    report = session_files.reported(30_000)
    talk = [session_files.asked(f"Check page {number}. {session_files.filler(900)}") for number in range(6)]
    answer = session_files.answered(1, session_files.text("Checked."), usage=report)
    file = session_files.claude_code(home / "target.jsonl", [*talk, answer])

    seen, data = run_each(
        home, ("compact", file, "--target", "1m"), ("compact", file, "--target", "1m", "--json")
    )

    first, besides, force = seen.lines
    taken = int(re.search(r"the request takes ([\d,]+) tokens", first)[1].replace(",", ""))
    missing = data.json["context"]["parts"]["not_in_file"]
    assert besides == f"Besides, {missing:,} tokens are system prompt and tools (not in the file)."
    assert taken + missing == data.json["tokens_before"]
    assert re.fullmatch(r"To compact nevertheless, keep less: --target \dk or --keep-messages 2", force)


def test_what_cannot_fit_fails_and_says_so_first(home, long) -> None:
    text, data = run_each(
        home, ("compact", long, "--target", 10), ("compact", long, "--target", 10, "--json")
    )

    assert (text.code, text.out) == (1, "")
    assert text.err.startswith("compaction failed: ")
    assert "Traceback" not in text.err
    assert (data.code, data.json["error"]["code"]) == (1, 1008)
    assert set(data.json["error"]["data"]["floor"]) >= {"system", "tools", "last_request", "summary"}


def test_every_format_is_read_and_named(home) -> None:
    files = {
        "OpenAI messages · 48 messages": session_files.openai(home / "o.json", 12),
        "Anthropic messages · 48 messages": session_files.anthropic(home / "a.json", 12),
        "neutral messages · 48 messages": session_files.neutral(home / "n.jsonl", 12),
        "pi · 48 messages": session_files.pi(home / "p.jsonl", 12),
        "Claude Code · 48 messages": session_files.claude_code(home / "c.jsonl", conversation(24)),
    }

    seen = run_each(home, *(("compact", file, "--target", "3k") for file in files.values()))

    assert [one.code for one in seen] == [0] * len(files)
    for one, what in zip(seen, files, strict=True):
        numbers(one)
        assert f"· {what}\n" in one.out
    assert [one.out.count("anthropic/claude-opus-4-5 · window 200,000") for one in seen] == [0, 1, 0, 1, 1]


def conversation(count: int) -> list[session_files.Json]:
    records = []
    for number in range(1, count + 1):
        words = session_files.text(f"Entry {number} is right. {session_files.filler(90)}")
        ask = f"Check entry {number}. {session_files.filler(90)}"
        records += [session_files.asked(ask), session_files.answered(number, words)]
    return records


def test_output_writes_a_context_that_can_be_inspected_and_compacted_again(home) -> None:
    report = session_files.reported(150_000)
    last = session_files.answered(99, session_files.text("Done."), usage=report)
    records = [*conversation(24), session_files.asked("Go."), last]
    source, target = session_files.claude_code(home / "in.jsonl", records), home / "out.jsonl"
    before = source.read_bytes()

    wrote = run(home, "compact", source, "--target", "4k", "--output", target)
    seen, again = run_each(home, ("inspect", target, "--json"), ("compact", target, "--target", "1k"))

    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert (
        f"wrote {target}: {seen.json['session']['messages']} messages, a session file of Claude Code\n"
        in wrote.out
    )
    assert [row.get("subtype") for row in rows[:2]] == ["compact_boundary", None]
    assert rows[1]["isCompactSummary"] is True
    assert rows[1]["sessionId"] != "5c5cb639-0000-4000-8000-000000000001"
    assert seen.json["session"]["compactions"] == 1
    # The report of the old context would be taken for one of the new: it is not written.
    assert seen.json["used"]["source"] == "estimated"
    assert 0 < seen.json["used"]["tokens"] == numbers(again)["before"] <= 4_200
    assert source.read_bytes() == before
    assert sorted(path.name for path in home.glob(".*out.jsonl*")) == []


def test_openai_messages_stay_openai_messages_with_their_system_prompt(home, long) -> None:
    target = home / "small.json"

    seen = run(home, "compact", long, "--target", "4k", "--output", target)

    messages = json.loads(target.read_text())
    assert seen.lines[-1] == f"wrote {target}: {len(messages)} messages, a JSON array of OpenAI messages"
    assert messages[0] == {"role": "system", "content": "Be exact."}
    assert {message["role"] for message in messages[1:]} <= {"user", "assistant", "tool"}


def test_the_session_file_itself_is_never_written_to(home, long) -> None:
    before, link = long.read_bytes(), home / "link.json"
    link.symlink_to(long)

    seen = run_each(
        home,
        ("compact", long, "--output", long),
        ("compact", long, "--output", link),
        ("compact", long, "--output", home),
        ("compact", long, "--output", home / "nowhere" / "x.json"),
    )

    assert [one.code for one in seen] == [2, 2, 2, 2]
    assert "it is the session file itself" in seen[0].err
    assert "it is the session file itself" in seen[1].err
    assert long.read_bytes() == before


def test_a_terminal_gets_the_words_that_a_pipe_gets(home, long, pipe) -> None:
    command = ("compact", long, "--target", "8k")

    terminal = run(home, *command, env=TERMINAL)
    quiet = run(home, *command, env={**TERMINAL, "NO_COLOR": "1"})

    took = re.compile(r"\d+\.\d\d s")
    assert took.sub("", terminal.words) == took.sub("", pipe.words) == took.sub("", quiet.words)
    assert "\x1b" not in pipe.out
    assert "\x1b[33m" in terminal.out
    assert "\x1b[3" not in quiet.out
    assert max(len(ANSI.sub("", line)) for line in terminal.lines) <= 80


def test_what_a_tool_printed_cannot_command_the_terminal(home) -> None:
    nasty = "\x1b]0;owned\x07\x1b[31mred\u202eeman\x9b2J never touch bank.toml"
    messages = [{"role": "user", "content": nasty}, *session_files.turns(12)]
    file = home / "nasty.json"
    file.write_text(json.dumps(messages))

    seen = run(home, "compact", file, "--target", "3k")

    assert (seen.code, "owned" in seen.out) == (0, True)
    assert not set(seen.out) & set("\x1b\x07\x9b\u202e")


def test_all_that_was_lost_is_listed_on_demand(home) -> None:
    many = session_files.openai(home / "many.json", 300, words=4)
    command = ("compact", many, "--target", "2k")

    short, whole, data = run_each(home, command, (*command, "--lost"), (*command, "--json"))

    retention = data.json["retention"]
    assert retention["lost"]
    total = round(retention["kept"] / retention["score"]) if retention["kept"] else len(retention["lost"])
    head = f"lost ({total - retention['kept']} of {total} details that came up more than once):"
    line = next(line for line in short.lines if line.startswith(head))
    assert retention["lost"][0] in line
    assert all(f"\n  {' '.join(fact.split())}\n" in whole.out for fact in retention["lost"])


def test_if_nothing_is_kept_no_number_of_details_is_invented(home) -> None:
    names = [f"src/part_{number}.py" for number in range(80)]
    messages = [
        {"role": role, "content": f"{name} {session_files.filler(60)}"}
        for name in names
        for role in ("user", "assistant")
    ]
    file = home / "names.json"
    file.write_text(json.dumps([*messages, {"role": "user", "content": "Go on."}]))
    command = ("compact", file, "--target", "100")

    short, whole, data = run_each(home, command, (*command, "--lost"), (*command, "--json"))

    retention = data.json["retention"]
    assert (retention["kept"], len(retention["lost"])) == (0, 50)
    assert re.search(r"^kept +0 % of .*: 0 of at least 50$", short.out, re.M)
    assert "\nlost (all details that came up more than once): " in short.out
    assert "\n  and perhaps others that were used less\n" in whole.out


def test_it_starts_from_the_context_in_force_and_all_takes_the_whole_file(home) -> None:
    summary = {"isCompactSummary": True}
    talk = [
        record
        for number in range(1, 25)
        for record in (
            session_files.asked(f"Check page {number}. {session_files.filler(60)}"),
            session_files.answered(number, session_files.text(session_files.filler(60))),
        )
    ]
    continued = session_files.asked("This session is being continued: pages 1 to 12.", **summary)
    file = session_files.claude_code(home / "twice.jsonl", [*talk[:24], continued, *talk[24:]])

    default, whole = (
        seen.json
        for seen in run_each(
            home, *(("compact", file, "--keep-messages", 2, "--json", *more) for more in ((), ("--all",)))
        )
    )

    assert [one["context"]["covers"] for one in (default, whole)] == ["context in force", "file"]
    assert [one["messages_before"] for one in (default, whole)] == [25, 49]
    assert default["tokens_before"] < whole["tokens_before"]


def test_what_is_not_compacted_says_how_to_force_it_and_that_works(home) -> None:
    file = session_files.openai(home / "forced.json", 6, system=None)

    refused, single = run_each(home, ("compact", file), ("compact", single_message(home)))
    options = re.search(r"keep less: (--target \S+) or (--keep-messages \d)", refused.out)
    assert options is not None, refused.out
    forced = run_each(home, *(("compact", file, *option.split()) for option in options.groups()))

    assert (refused.code, [one.code for one in forced]) == (3, [0, 0])
    assert single.lines[-1] == "There is only one message, so no option makes the session smaller."


def single_message(home):
    file = home / "single.json"
    file.write_text(json.dumps([{"role": "user", "content": "Go."}]))
    return file


def test_without_a_file_to_write_a_format_is_refused(home, long) -> None:
    seen = run_each(
        home,
        ("compact", long, "--to", "codex"),
        ("compact", long, "--output", "x.json", "--resumable"),
        ("compact", long, "--resumable", "--dry-run"),
        ("compact", long, "--resumable"),
    )

    assert [one.code for one in seen] == [2, 2, 2, 2]
    assert "Add --output FILE or --resumable." in seen[0].err
    assert "--output and --resumable cannot be combined." in seen[1].err
    assert "cannot be combined with --resumable" in seen[2].err
    assert "--resumable cannot be used for OpenAI messages" in seen[3].err


def test_resumable_writes_a_new_session_next_to_the_old_one(home) -> None:
    folder = home / ".claude" / "projects" / "-home-someone-ledger"
    folder.mkdir(parents=True)
    source = session_files.claude_code(
        folder / "5c5cb639-0000-4000-8000-000000000001.jsonl", conversation(24)
    )
    before = source.read_bytes()
    command = ("compact", source, "--target", "3k", "--resumable")

    first, second = run(home, *command), run(home, *command, "--json")

    written = second.json["written"]
    new = {path.stem for path in folder.iterdir() if path != source}
    (id,) = new - {written["session_id"]}
    assert (first.code, second.code, len(new)) == (0, 0, 2)
    assert written["path"] == str(folder / f"{written['session_id']}.jsonl")
    assert first.lines[-2:] == [
        "To continue in Claude Code:",
        f"  cd /home/someone/ledger && claude --resume {id}",
    ]
    assert source.read_bytes() == before


def test_a_file_elsewhere_says_where_its_agent_looks_for_it(home) -> None:
    source, target = session_files.claude_code(home / "s.jsonl", conversation(24)), home / "else where.jsonl"

    seen = run(
        home, "compact", source, "--target", "3k", "--output", target, env={**TERMINAL, "COLUMNS": "60"}
    )

    copy, resume = (ANSI.sub("", line) for line in seen.lines[-2:])
    id = resume.split()[-1]
    place = home / ".claude" / "projects" / "-home-someone-ledger" / f"{id}.jsonl"
    # The commands are not wrapped, so that they can be copied.
    assert copy == f"  mkdir -p {place.parent} && cp -n '{target}' {place}"
    assert resume == f"  cd /home/someone/ledger && claude --resume {id}"
    assert json.loads(target.read_text().splitlines()[0])["sessionId"] == id
