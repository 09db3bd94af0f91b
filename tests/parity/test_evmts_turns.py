"""docs/specs-evmts-opencode.md, "evmts-32.md", the command, the automatic compaction, the criteria, sentence
by sentence, over the wire.

`docs/specs-evmts-opencode.md` says which test is whose. Where the spec and docs/dev/behaviour.md differ,
docs/dev/behaviour.md wins, and the test says so.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.parity.evmts import SUMMARY, TOO_SHORT, conversation, filled
from tests.support.client import Daemon, environment
from tests.support.loopback import Answer, Loopback
from tests.support.own_loop import environment as own_environment
from tests.support.talk import assistant, turns, user
from tests.support.wire import MODEL, append, begin, compact, report, started, state, view

# --- slash-command-handler --------------------------------------------------------------------------


def ran(tmp_path: Path, count: int, *arguments: str) -> tuple[int, str, str]:
    """`compactd compact` on a file of so many messages: (exit code, stdout, stderr)."""
    file = tmp_path / "session.json"
    names = ("user", "assistant")
    words = "so we went on and looked at it once more until all was well. " * 20
    file.write_text(
        json.dumps([{"role": names[n % 2], "content": f"{n}: {words}"} for n in range(count)]), "utf-8"
    )
    command = [sys.executable, "-m", "compactd", "compact", str(file), *arguments]
    env = environment(tmp_path / "home", {"COMPACTD_PROFILE": "evmts"})
    done = subprocess.run(command, env=env, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_the_command_prints_the_three_lines_of_the_spec(tmp_path: Path) -> None:
    code, out, _ = ran(tmp_path, 20, "--keep-messages", "5")

    first, second, *_ = out.splitlines()
    sizes = re.fullmatch(r"  Tokens: (6,120) → ([\d,]+) \(saved ([\d,]+)\)", second)
    assert (code, first) == (0, "✓ Compacted 15 messages")
    assert sizes is not None, second
    before, after, saved = (int(size.replace(",", "")) for size in sizes.groups())
    assert saved == before - after > 0
    assert after > 5 * 306, "five of 306 tokens stay"


def test_the_command_says_why_nothing_was_to_be_compacted(tmp_path: Path) -> None:
    how = "To compact nevertheless, keep less: --keep-messages 2"
    assert ran(tmp_path, 6, "--keep-messages", "5")[:2] == (3, f"No compaction needed: {TOO_SHORT}\n{how}\n")


def test_the_command_says_that_a_compaction_failed(tmp_path: Path) -> None:
    code, _, err = ran(tmp_path, 20, "--target", "10")

    assert code == 1
    assert err.startswith("compaction failed: ")


def chatted(tmp_path: Path, server: Loopback, *lines: str, more: int = 0, **settings: int) -> tuple[str, str]:
    """`compactd chat` in a session of 20 messages and `more` tokens, with these lines typed: what it printed,
    and what it said was wrong."""
    env = own_environment("anthropic", server.base_url)
    with Daemon(tmp_path / "home", env=env) as daemon:
        session = started(daemon, "evmts", settings=settings, model=MODEL)
        append(daemon, session, *turns(10, 200), *([user(more)] if more else []))
    done = subprocess.run(
        [sys.executable, "-m", "compactd", "chat", "--session", session],
        input="".join(f"{line}\n" for line in lines).encode(),
        env=environment(tmp_path / "home", env),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.stdout.decode(), done.stderr.decode()


def test_the_slash_command_compacts_the_talk_and_says_so(tmp_path: Path, server: Loopback) -> None:
    out, wrong = chatted(tmp_path, server, "/compact", "/compact")

    first, second, third = out.splitlines()[1:]
    assert wrong == ""
    assert first == "✓ Compacted 15 messages"
    assert re.fullmatch(r"  Tokens: 4,000 → [\d,]+ \(saved [\d,]+\)", second)
    reason = "No compaction needed: nothing was added since the last compaction"
    assert third == f"{reason}. To compact anyway: /compact --keep 1"


def test_a_slash_command_that_fails_says_so_and_the_talk_goes_on(tmp_path: Path, server: Loopback) -> None:
    out, wrong = chatted(tmp_path, server, "/compact", "/undo", "/state", more=9000, context_window=9000)

    assert wrong.startswith("compaction failed: The request cannot be made to fit ")
    assert "to undo" in wrong
    assert " of 9,000 tokens" in out


def test_a_talk_that_is_compacted_by_itself_says_so(tmp_path: Path, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY), Answer(text="Fine."))

    out, _ = chatted(tmp_path, server, "And now?", model_auto_compact_token_limit=4000)

    assert re.search(r"^Conversation compacted: 16 messages → summary \(4,002 → [\d,]+ tokens\)$", out, re.M)
    assert "Fine." in out


# --- auto-compaction --------------------------------------------------------------------------------


def test_before_a_message_is_processed_what_is_above_the_limit_is_compacted(daemon: Daemon) -> None:
    session = filled(daemon, model_auto_compact_token_limit=3999)

    done = begin(daemon, session)

    assert done is not None
    assert done["compacted"] is True
    assert len(view(daemon, session)) == 6
    assert begin(daemon, session) is None, "the next turn finds it below the limit"


def test_the_size_is_our_count_of_the_session_and_no_report(daemon: Daemon) -> None:
    # docs/dev/behaviour.md, "size: base": under evmts the estimate.
    session = filled(daemon, model_auto_compact_token_limit=5000)

    decision = append(daemon, session, assistant(10), usage=report(60_000))["decision"]

    assert decision["kind"] == "fits"
    assert begin(daemon, session) is None


def test_the_client_is_told_of_a_compaction_with_the_tokens_that_it_saved(daemon: Daemon) -> None:
    # The spec's event `session.compacted`: here `compaction_end` with `completed`.
    session = filled(daemon, model_auto_compact_token_limit=3999)
    at = daemon.now

    done = begin(daemon, session)

    assert done is not None
    told = daemon.events(session, after=at)
    types = [e["type"] for e in told if e["type"] != "compaction_progress"]
    # The numbers of the append before may follow its answer.
    assert types[types.index("compaction_start") :] == [
        "compaction_start",
        "compaction_end",
        "usage_update",
    ]
    end = next(e for e in told if e["type"] == "compaction_end")
    assert (end["session_id"], end["status"]) == (session, "completed")
    assert end["result"]["tokens_saved"] == done["tokens_before"] - done["tokens_after"] > 0


def test_where_nothing_was_compacted_nothing_is_told_and_the_turn_goes_on(daemon: Daemon) -> None:
    session = started(daemon, "evmts", 100_000, settings={"model_auto_compact_token_limit": 1000})
    append(daemon, session, *turns(3, 200))
    at = daemon.now

    begun = daemon.call("turn/begin", session_id=session)

    assert (begun["compaction"]["compacted"], begun["compaction"]["reason"]) == (False, TOO_SHORT)
    assert daemon.events(session, after=at) == []
    assert daemon.call("turn/end", session_id=session, messages=[assistant(10)])["entry_ids"] == ["e7"]
    assert state(daemon, session)["compaction"]["count"] == 0


# --- criteria ---------------------------------------------------------------------------------------


def test_a_second_compaction_takes_the_first_ones_summary_in_and_loses_no_decision(daemon: Daemon) -> None:
    session = filled(daemon, *conversation(), window=200_000)
    compact(daemon, session)
    append(daemon, session, *turns(6, 300))

    done = compact(daemon, session)

    summaries = [m for m in view(daemon, session) if (m.get("meta") or {}).get("type")]
    assert len(summaries) == 1
    assert "I decided to use lookup tables" in done["summary"]
    assert "src/tables.py" in done["modified_files"]
    assert "src/scan.py" in done["read_files"]
