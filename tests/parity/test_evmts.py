"""docs/specs-evmts-opencode.md, "evmts-32.md", the objective and the functional requirements, sentence by
sentence, over the wire.

`docs/specs-evmts-opencode.md` says which test is whose. Where the spec and docs/dev/behaviour.md differ,
docs/dev/behaviour.md wins, and the test says so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parity.evmts import LEAD, by_a_model, conversation, filled
from tests.support.client import Daemon
from tests.support.loopback import Loopback
from tests.support.talk import assistant, said, turns, user
from tests.support.wire import append, begin, compact, started, view

# --- Objective --------------------------------------------------------------------------------------


def test_a_conversation_is_compacted_both_by_itself_and_on_request(daemon: Daemon) -> None:
    by_itself = filled(daemon, model_auto_compact_token_limit=3999)
    asked = filled(daemon)

    automatic, manual = begin(daemon, by_itself), compact(daemon, asked)

    assert automatic is not None
    assert (automatic["compacted"], automatic["trigger"]) == (True, "threshold")
    assert (manual["compacted"], manual["trigger"]) == (True, "manual")
    assert begin(daemon, asked) is None, "nothing was due"


def test_a_summary_takes_fewer_tokens_than_what_it_stands_for(daemon: Daemon) -> None:
    session = filled(daemon)

    done = compact(daemon, session)

    assert done["tokens_saved"] == done["tokens_before"] - done["tokens_after"] > 0


def test_deviation_a_compaction_that_would_not_shrink_the_request_is_none(daemon: Daemon) -> None:
    # The spec compacts seven messages of one token; docs/dev/behaviour.md, law 2: what would not shrink is
    # left.
    session = filled(daemon, *[user(1) if n % 2 else assistant(1) for n in range(7)])

    done = compact(daemon, session)

    assert (done["compacted"], done["compaction_id"]) == (False, None)
    assert "would not make it smaller" in done["reason"]


# --- functional-requirements ------------------------------------------------------------------------


def test_the_tokens_are_counted_while_the_conversation_goes_on(daemon: Daemon) -> None:
    session = started(daemon, "evmts", 100_000)

    told = [append(daemon, session, user(10 * n))["token_usage"] for n in (1, 2, 3)]

    assert [usage["current_context_tokens"] for usage in told] == [10, 30, 60]
    daemon.call("daemon/ping")
    events = [e["usage"] for e in daemon.events(session) if e["type"] == "usage_update"]
    assert [usage["current_context_tokens"] for usage in events] == [10, 30, 60]


@pytest.mark.parametrize(("tokens", "kind"), [(4999, "fits"), (5000, "fits"), (5001, "due")])
def test_a_compaction_is_due_above_the_auto_compact_limit_and_not_at_it(
    daemon: Daemon, tokens: int, kind: str
) -> None:
    session = started(daemon, "evmts", 100_000, settings={"model_auto_compact_token_limit": 5000})

    decision = append(daemon, session, user(tokens))["decision"]

    assert (decision["kind"], decision["used"], decision["threshold"]) == (kind, tokens, 5000)


@pytest.mark.parametrize(
    ("settings", "threshold"), [({}, 80_000), ({"threshold_ratio": 0.5}, 50_000)], ids=["80%", "50%"]
)
def test_the_threshold_is_80_percent_of_the_window_where_no_limit_is_set_and_another_share_can_be(
    daemon: Daemon, settings: dict[str, float], threshold: int
) -> None:
    session = started(daemon, "evmts", 100_000, settings=settings)

    kinds = [append(daemon, session, user(n))["decision"]["kind"] for n in (threshold, 1)]

    assert kinds == ["fits", "due"]


def test_where_the_window_is_unknown_the_threshold_is_150000(daemon: Daemon) -> None:
    # docs/dev/behaviour.md, "unknown window": the constant of the spec's own code.
    session = started(daemon, "evmts", model="acme/unheard-of-9", persist=False)

    kinds = [append(daemon, session, user(n))["decision"]["kind"] for n in (150_000, 1)]

    assert kinds == ["fits", "due"]


def test_the_manual_command_is_a_method_and_a_command_for_editors(daemon: Daemon) -> None:
    # The spec's `/compact`: a slash command is a client's; both ways end here.
    one, other = filled(daemon), filled(daemon)

    by_method = compact(daemon, one)
    by_command = daemon.call(
        "workspace/executeCommand", command="compactd.compact", arguments=[{"session_id": other}]
    )

    same = ("compacted", "trigger", "messages_removed", "tokens_before", "tokens_after", "summary")
    assert {name: by_command[name] for name in same} == {name: by_method[name] for name in same}


@pytest.mark.parametrize(
    ("settings", "kept"), [({}, 5), ({"preserve_count": 10}, 10), ({"keep_messages": 1}, 1)], ids=str
)
def test_all_but_the_last_n_messages_are_summarised_and_those_stay_as_they_were(
    daemon: Daemon, settings: dict[str, int], kept: int
) -> None:
    messages = [*turns(10, 200), user(200, seed=5)]
    session = filled(daemon, *messages, **settings)

    done = compact(daemon, session)

    assert (done["messages_removed"], done["kept_messages"]) == (21 - kept, kept)
    last = [{**message, "entry_id": f"e{n}"} for n, message in enumerate(messages, 1)][-kept:]
    assert view(daemon, session)[1:] == last


def test_one_summary_message_with_the_key_information_takes_the_place_of_the_old_ones(
    daemon: Daemon,
) -> None:
    session = filled(daemon, user(20, content="Never touch src/api.py."), *turns(10, 200))

    done = compact(daemon, session)

    first, *rest = view(daemon, session)
    assert said(first) == done["summary"]
    assert first["meta"]["type"] == "compaction_summary"
    assert "Never touch src/api.py." in done["summary"]
    assert len(rest) == 5
    assert not any(LEAD in said(message) for message in rest)


@pytest.mark.parametrize(
    ("what", "heading"),
    [
        ("src/scan.py", None),
        ("src/tables.py", None),
        ("I decided to use lookup tables because they are quicker than branches.", "KEY DECISIONS"),
        ("return TABLE[text[0]](text)", "CODE CHANGES"),
        ("KeyError: '$end'", "ERRORS & SOLUTIONS"),
        ("1 passed", "ERRORS & SOLUTIONS"),
        ("a sentinel in TABLE fixes it", None),
        ("Never change the grammar in src/grammar.txt.", "CURRENT STATE"),
    ],
    ids=["path read", "path written", "decision", "code", "error", "its end", "solution", "limit"],
)
def test_paths_decisions_code_errors_and_their_solutions_are_in_the_summary(
    daemon: Daemon, what: str, heading: str | None
) -> None:
    session = filled(daemon, *conversation(), window=200_000)

    done = compact(daemon, session)

    assert what in done["summary"]
    if heading is not None:
        under = done["summary"].split(f"## {heading}\n")[1].split("\n## ")[0]
        assert what in under


@pytest.mark.parametrize("automatic", [False, True], ids=["manual", "automatic"])
def test_an_editor_shows_how_many_messages_became_a_summary_and_the_tokens_before_and_after(
    tmp_path: Path, automatic: bool
) -> None:
    with Daemon(tmp_path / "home") as daemon:
        daemon.call("initialize", processId=None, capabilities={})
        daemon.notify("initialized")
        session = filled(daemon, **({"model_auto_compact_token_limit": 3999} if automatic else {}))

        done = begin(daemon, session) if automatic else compact(daemon, session)

        shown = daemon.wait(lambda got: got.value.get("method") == "window/logMessage", "window/logMessage")
        assert done is not None
        assert shown.value["params"]["message"] == (
            f"Conversation compacted: {done['messages_removed']} messages → summary"
            f" ({done['tokens_before']:,} → {done['tokens_after']:,} tokens)"
        )


@pytest.mark.parametrize("marked", [True, False])
def test_the_prompt_can_be_replaced(daemon: Daemon, server: Loopback, marked: bool) -> None:
    own = "List what was eaten." + (" It was: {messages} That was all." if marked else "")
    session = by_a_model(daemon, server, "Bread and butter.", "Bread, butter and jam.", compact_prompt=own)

    done = compact(daemon, session)
    append(daemon, session, *turns(10, 200))
    later = compact(daemon, session)

    assert (done["strategy"], done["reason"]) == ("summarize", "")
    assert "Bread and butter." in done["summary"], "checked against no headings but those it asked for"
    assert "Bread, butter and jam." in later["summary"]
    for request in server.requests:
        sent = request.raw.decode()
        assert "List what was eaten." in sent
        assert "{messages}" not in sent
        assert "KEY DECISIONS" not in sent
        assert sent.index("eaten.") < sent.index("<conversation>")
        assert ("That was all." in sent) is marked
    _, second = (request.raw.decode() for request in server.requests)
    assert second.count("Bread and butter.") == 1, "the earlier summary is among what was eaten"
    assert second.index("eaten.") < second.index("Bread and butter.")
    assert not marked or second.index("Bread and butter.") < second.index("That was all.")
