"""OpenCode 1.18.33, headless, with compactd's plugin: compactd writes its summaries; no failure stops it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.daemons import DEAF, DYING, daemon
from tests.editors.opencode.driven import SUMMARISER, OpenCode, Session
from tests.support.loopback import Answer, Call, Loopback, Overflow, Seen

pytestmark = [pytest.mark.editor, pytest.mark.agent]

OURS = "[Conversation summary"
RULE = "Never touch src/api.py."
COUNTED = Answer(text="Noted.", count_input=True)
SMALL = 400
"""Tokens. A request for a summary that contains no history is smaller."""


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(then=COUNTED) as provider:
        yield provider


@pytest.fixture(scope="module")
def opencode(server: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCode]:
    with OpenCode(tmp_path_factory.mktemp("opencode"), server) as running:
        yield running


@pytest.fixture
def session(opencode: OpenCode, server: Loopback) -> Session:
    server.forget()
    return opencode.new_session()


def words(topic: str, count: int = 400) -> str:
    """Return `count` words of filler text, about two tokens per word."""
    return f"{topic}: " + " ".join(f"{topic}{number:04}" for number in range(count))


def talk(session: Session) -> None:
    """Run three turns. The first contains the rule that must not be lost; OpenCode keeps the last
    unchanged."""
    session.ask(f"{RULE} {words('alpha')}")
    session.ask(f"Rename the loader. {words('beta')}")
    session.ask(words("gamma", 200))


def said(seen: Seen) -> str:
    return json.dumps(seen.body["messages"], ensure_ascii=False)


def summary_requests(server: Loopback) -> list[Seen]:
    return [seen for seen in server.requests if SUMMARISER in said(seen)]


def last(server: Loopback) -> str:
    """Return the newest request that did not ask for a title."""
    return said(next(seen for seen in reversed(server.requests) if seen.body.get("tools")))


def is_whole(request: str) -> bool:
    """Return whether compactd's summary is in the request once, and the rule is in it."""
    return request.count(OURS) == 1 and RULE in request


def test_the_stored_summary_is_ours_and_the_model_saw_no_history(session: Session, server: Loopback) -> None:
    talk(session)

    session.compact()

    (summary,) = session.summaries()
    assert summary.startswith(OURS)
    assert RULE in summary
    (asked,) = summary_requests(server)
    assert asked.tokens < SMALL
    assert "alpha0001" not in said(asked)
    session.ask("Go on.")
    request = last(server)
    assert is_whole(request)
    assert "alpha0399" not in request
    assert request.index(OURS) < request.index("gamma0199") < request.index("Go on.")


def test_beyond_the_threshold_the_summary_is_ours(session: Session, server: Loopback) -> None:
    session.ask(f"{RULE} {words('alpha', 1_500)}")
    session.ask(words("beta", 4_000))
    session.ask(words("gamma", 200))

    session.ask("Go on.")

    assert session.summaries()
    assert all(summary.startswith(OURS) for summary in session.summaries())
    assert all(asked.tokens < SMALL for asked in summary_requests(server))
    assert is_whole(last(server))


def test_after_an_overflow_opencode_sends_again_with_our_summary(session: Session, server: Loopback) -> None:
    talk(session)
    server.play(Overflow(requested=25_000, limit=20_000))

    session.ask("Go on with the loader.")

    assert [summary.startswith(OURS) for summary in session.summaries()] == [True]
    request = last(server)
    assert is_whole(request)
    assert "Go on with the loader." in request


def test_a_turn_that_is_cut_in_two_is_in_our_summary(
    session: Session, opencode: OpenCode, server: Loopback
) -> None:
    (opencode.work / "notes.txt").write_text(words("delta", 600))
    call = Call("read", json.dumps({"filePath": str(opencode.work / "notes.txt")}), "call_n")
    session.ask("Hello.")
    server.play(
        Answer(text="I look.", calls=(call,), count_input=True),
        Answer(text=words("epsilon", 200), count_input=True),
    )
    session.ask(f"{RULE} {words('alpha')}")

    session.compact()

    (summary,) = session.summaries()
    assert summary.startswith(OURS)
    session.ask("Go on.")
    request = last(server)
    assert is_whole(request)
    assert "epsilon0199" in request
    assert "delta0599" not in request


def test_a_second_compaction_keeps_what_the_first_kept(session: Session, server: Loopback) -> None:
    talk(session)
    session.compact()
    session.ask(f"Keep the log level at debug. {words('delta')}")
    session.ask(words("epsilon", 200))

    session.compact()

    assert [summary.startswith(OURS) for summary in session.summaries()] == [True, True]
    session.ask("Go on.")
    request = last(server)
    assert is_whole(request)
    assert "debug" in request


def test_what_was_reverted_is_not_in_the_summary(session: Session, server: Loopback) -> None:
    talk(session)
    wrong = session.ask(f"Drop the table invoices. {words('omega')}")
    session.revert(wrong["info"]["parentID"])
    session.ask(words("delta"))
    session.ask(words("epsilon", 200))

    session.compact()

    (summary,) = session.summaries()
    assert RULE in summary
    assert "invoices" not in summary


def test_the_model_recalls_a_line_that_the_compaction_removed(session: Session, server: Loopback) -> None:
    talk(session)
    session.compact()
    recall = Call("recall", '{"query": "beta0321", "entries": ""}', "call_q")
    server.play(Answer(calls=(recall,), count_input=True))

    session.ask("Which word was number 321?")

    results = [m for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
    assert "beta0321" in json.dumps(results)


def test_where_the_daemon_dies_in_a_compaction_the_model_writes_the_summary_and_the_next_is_ours(
    tmp_path: Path, server: Loopback
) -> None:
    server.forget()
    env = {"COMPACTD_COMMAND": str(daemon(tmp_path, DYING))}
    with OpenCode(tmp_path, server, env=env) as running:
        session = running.new_session()
        talk(session)

        session.compact()

        assert session.summaries() == ["Noted."]
        assert "alpha0001" in said(summary_requests(server)[-1])
        assert "OpenCode's model writes the summary: the daemon ended" in running.said()
        session.ask(words("delta"))
        assert "delta0399" in last(server)
        session.ask(words("epsilon", 200))
        session.compact()
        assert session.summaries()[1].startswith(OURS)
        session.ask("Go on.")
        assert is_whole(last(server))


@pytest.mark.parametrize(
    ("text", "why"), [("", "was not found"), (DEAF, "more than 2 s")], ids=["missing", "deaf"]
)
def test_with_no_daemon_opencode_compacts_by_itself_and_says_why(
    tmp_path: Path, server: Loopback, text: str, why: str
) -> None:
    server.forget()
    command = daemon(tmp_path, text) if text else tmp_path / "nowhere"
    env = {"COMPACTD_COMMAND": str(command), **({"COMPACTD_OPENCODE_DEADLINE_S": "2"} if text else {})}
    with OpenCode(tmp_path, server, env=env) as running:
        session = running.new_session()
        talk(session)

        session.compact()

        assert session.summaries() == ["Noted."]
        assert "alpha0001" in said(summary_requests(server)[-1])
        assert "OpenCode compacts by itself" in running.said()
        assert why in running.said()
        session.ask("Go on.")
        assert "Go on." in last(server)
