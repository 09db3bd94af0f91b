"""`session/redact` removes copies of a message too: in summaries, stubs, titles and queued prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.loopback import Loopback, Stall
from tests.support.own_loop import MODELS, environment
from tests.support.redacted import MARK, PASTED, SECRET, everything, on_disk, started
from tests.support.talk import CHARS4, Message, assistant, call, result, said, turns, user
from tests.support.views import problems_of_providers


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def test_summaries_facts_titles_and_file_lists_forget_it_too(spawn: Spawn, home: Path) -> None:
    daemon = spawn()
    path = "src/vault-Kq77Zp19.py"
    read = [call("t1", "read", path=path), result("t1", 30)]
    session = started(daemon, [PASTED, *read, *turns(6, 200)], title=f"about {SECRET}")
    done = daemon.call("session/compact", session_id=session, keep_recent=500)
    assert done["compacted"]
    assert SECRET in done["summary"]
    assert path in done["read_files"]

    daemon.call("session/redact", session_id=session, entry_ids=["e1", "e2"])

    assert [on_disk(home, text) for text in (SECRET, "1234 5678", "Kq77Zp19")] == [[], [], []]
    seen = everything(daemon, session)
    assert [text for text in (SECRET, "1234 5678", "Kq77Zp19") if text in seen] == []
    assert "## Constraints & Preferences\n- [redacted] [e1]" in said(
        daemon.call("session/context", session_id=session)["messages"][0]
    )
    assert problems_of_providers(daemon, session) == {}


def test_words_that_another_message_says_too_stay_in_the_summary(daemon: Daemon) -> None:
    other = {"role": "user", "content": "Never touch src/ordinary_loader.py, whatever happens."}
    pasted = {"role": "user", "content": f"Use {SECRET} with src/ordinary_loader.py for once."}
    session = started(daemon, [other, assistant(10), pasted, *turns(6, 200)])
    daemon.call("session/compact", session_id=session, keep_recent=500)

    daemon.call("session/redact", session_id=session, entry_ids=["e3"])

    summary = said(daemon.call("session/context", session_id=session)["messages"][0])
    assert "Never touch src/ordinary_loader.py, whatever happens. [e1]" in summary
    assert SECRET not in summary


def test_stubs_of_pruned_results_forget_what_the_redacted_call_named(spawn: Spawn, home: Path) -> None:
    daemon = spawn()
    work: list[Message] = [user(5)]
    for number in range(6):
        work += [call(f"t{number}", "read", path=f"src/hidden-Wx{number}Yt55.py"), result(f"t{number}", 2000)]
    settings_ = {"prune_minimum": 10, "prune_protect": 10, "context_window": 100_000, **CHARS4}
    session = started(daemon, [*work, *turns(3, 10)], compaction=settings_)
    pruned = daemon.call("session/prune", session_id=session)
    assert "e3" in pruned["entry_ids"]
    assert on_disk(home, "Wx0Yt55")

    daemon.call("session/redact", session_id=session, entry_ids=["e2", "e5"])

    assert on_disk(home, "Wx0Yt55") == []
    assert "Wx0Yt55" not in everything(daemon, session)
    assert "Wx2Yt55" in everything(daemon, session)
    context = daemon.call("session/context", session_id=session)
    assert context["messages"][4]["content"][0]["content"] == MARK
    # The context, token counts included, is the same after the session is opened again.
    daemon.call("session/close", session_id=session)
    daemon.call("session/start", session_id=session)
    assert daemon.call("session/context", session_id=session) == context


def test_what_undo_brings_back_is_the_mark(daemon: Daemon) -> None:
    session = started(daemon, [PASTED, *turns(6, 200)])
    daemon.call("session/compact", session_id=session, keep_recent=500)
    daemon.call("session/redact", session_id=session, entry_ids=["e1"])

    daemon.call("session/undo", session_id=session)

    context = daemon.call("session/context", session_id=session)["messages"]
    assert (said(context[0]), len(context)) == (MARK, 13)


def test_prompts_that_wait_or_were_taken_up_forget_it(spawn: Spawn, server: Loopback, home: Path) -> None:
    daemon = spawn(env=environment("anthropic", server.base_url))
    session = daemon.call("session/start", model=MODELS["anthropic"], compaction=CHARS4)["session_id"]
    server.play(Stall("Thinking"))
    first = daemon.call("agent/prompt", session_id=session, text=str(PASTED["content"]))
    daemon.event("message_delta", session)
    daemon.call("agent/prompt", session_id=session, text=f"Did you use {SECRET}, as I told you?")
    busy = daemon.refusal("session/redact", session_id=session, entry_ids=["e1"])
    daemon.call("agent/abort", session_id=session)
    daemon.event("agent_end", session, turn_id=first["turn_id"])

    answer = daemon.call("session/redact", session_id=session, entry_ids=["e1"])
    daemon.call("agent/prompt", session_id=session, text="Go on")
    daemon.event("agent_end", session, turn_id="t3")

    assert busy.code == 1002
    assert (answer["redacted"], "left" in answer) == (1, False)
    assert on_disk(home, SECRET) == []
    context = daemon.call("session/context", session_id=session)["messages"]
    asked = [said(message) for message in context if message["role"] == "user"]
    assert asked == [MARK, f"Did you use {MARK}, as I told you?", "Go on"]
