"""`session/reduce` and `session/append` with `reduce`: what is shown, and where the original is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.outputs import answering, calling, hits, log, original, reduce, shown
from tests.support.talk import user

LOG = log()


def start(daemon: Daemon, **more: Any) -> str:
    session = str(daemon.call("session/start", **more)["session_id"])
    daemon.call("session/append", session_id=session, messages=[user(5), calling("c1")])
    return session


def test_an_output_is_shown_shorter_and_its_original_is_kept_to_the_byte(daemon: Daemon) -> None:
    session = start(daemon)

    done = reduce(daemon, session, LOG, call_id="c1")

    assert done["reduced"]
    assert done["tokens_after"] < done["tokens_before"] // 2
    assert len(done["content"]) < len(LOG)
    assert done["rules"]
    assert f"expand {done['entry_id']}]" in done["content"]
    assert original(daemon, session, done["entry_id"]) == LOG


@pytest.mark.parametrize(
    "tail",
    ["\r\n\r\nend", "\0 and \x1b[31mred\x1b[0m", "é 🎉 \u2028 \ufffe", "\ttabs\x0b\x0c and blanks   "],
)
def test_odd_characters_come_back_to_the_byte(daemon: Daemon, tail: str) -> None:
    session = start(daemon)
    given = LOG.replace("\n", "\r\n", 50) + tail

    done = reduce(daemon, session, given)

    assert original(daemon, session, done["entry_id"]) == given


def test_a_small_output_and_an_empty_one_stay_as_they_are(daemon: Daemon) -> None:
    session = start(daemon)

    for given in ("", "ok\n", "the same line\n" * 20):
        done = reduce(daemon, session, given)

        assert (done["content"], done["reduced"], done["entry_id"], done["rules"]) == (given, False, None, [])
        assert done["tokens_before"] == done["tokens_after"]


def test_the_original_is_no_message(daemon: Daemon) -> None:
    session = start(daemon)
    before = daemon.call("agent/state", session_id=session)

    done = reduce(daemon, session, LOG, call_id="c1")

    after = daemon.call("agent/state", session_id=session)
    assert after["token_usage"] == before["token_usage"]
    assert after["message_count"] == before["message_count"] == 2
    history = daemon.call("session/history", session_id=session)["entries"]
    assert [entry["entry_id"] for entry in history] == ["e1", "e2"]
    shown = daemon.call("session/context", session_id=session)["messages"]
    assert "is ready" not in str(shown)
    for method, given in (
        ("session/branch", {"entry_id": done["entry_id"]}),
        ("session/pin", {"entry_ids": [done["entry_id"]]}),
    ):
        assert daemon.refusal(method, session_id=session, **given).code == -32602


def test_the_later_result_and_the_original_lead_to_each_other(daemon: Daemon) -> None:
    session = start(daemon)
    done = reduce(daemon, session, LOG, call_id="c1")

    appended = daemon.call("session/append", session_id=session, messages=[answering("c1", done["content"])])[
        "entry_ids"
    ]

    given = {"session_id": session, "entry_ids": [*appended, done["entry_id"]]}
    message, kept = daemon.call("session/expand", **given)["entries"]
    assert message["originals"] == [done["entry_id"]]
    assert shown(message["message"]) == done["content"]
    assert kept["shown_in"] == appended
    assert "originals" not in kept


def test_what_was_left_out_is_found_once_and_names_the_original(daemon: Daemon) -> None:
    session = start(daemon)
    done = reduce(daemon, session, LOG, call_id="c1")
    daemon.call("session/append", session_id=session, messages=[answering("c1", done["content"])])

    assert "worker 100 " not in done["content"]
    assert hits(daemon, session, "worker 100 is") == [done["entry_id"]]
    assert "worker 0 " in done["content"]
    (hit,) = daemon.call("session/search", session_id=session, query="worker 0 is")["hits"]
    assert (hit["entry_id"], hit["role"], hit["in_context"]) == (done["entry_id"], "tool", True)
    everywhere = daemon.call("session/search", query="worker 100 is ready")["hits"]
    found = [hit["entry_id"] for hit in everywhere if hit["session_id"] == session]
    assert found == [done["entry_id"]]


def test_an_output_that_is_never_appended_stays_findable(daemon: Daemon) -> None:
    session = start(daemon)

    done = reduce(daemon, session, LOG)

    (hit,) = daemon.call("session/search", session_id=session, query="worker 100 is")["hits"]
    assert (hit["entry_id"], hit["in_context"]) == (done["entry_id"], False)
    (kept,) = daemon.call("session/expand", session_id=session, entry_id=done["entry_id"])["entries"]
    assert kept["shown_in"] == []


def test_the_same_output_of_the_same_call_gets_the_same_answer(spawn: Spawn) -> None:
    with spawn() as first:
        session = start(first)
        done = reduce(first, session, LOG, call_id="c1")
        assert reduce(first, session, LOG, call_id="c1", level="strong") == done
        assert reduce(first, session, done["content"], call_id="c1")["entry_id"] == done["entry_id"]
        first.call("session/append", session_id=session, messages=[answering("c1", done["content"])])

    again = spawn()
    again.call("session/start", session_id=session)
    assert reduce(again, session, LOG, call_id="c1") == done
    assert again.call("agent/state", session_id=session)["reductions"]["count"] == 1


def test_another_output_of_a_call_id_that_comes_again_is_another_entry(daemon: Daemon) -> None:
    session = start(daemon)
    done = reduce(daemon, session, LOG, call_id="c1")
    daemon.call("session/append", session_id=session, messages=[answering("c1", done["content"])])

    other = reduce(daemon, session, log(300, "job"), call_id="c1")

    assert other["entry_id"] != done["entry_id"]
    assert original(daemon, session, other["entry_id"]) == log(300, "job")
    assert original(daemon, session, done["entry_id"]) == LOG
    appended = daemon.call(
        "session/append", session_id=session, messages=[calling("c1"), answering("c1", other["content"])]
    )["entry_ids"]
    given = {"session_id": session, "entry_ids": appended[1:]}
    assert daemon.call("session/expand", **given)["entries"][0]["originals"] == [other["entry_id"]]


def test_an_output_whose_result_was_appended_already_is_kept_too(daemon: Daemon) -> None:
    session = start(daemon)
    daemon.call("session/append", session_id=session, messages=[answering("c1", LOG)])

    done = reduce(daemon, session, log(300, "job"), call_id="c1")

    assert original(daemon, session, done["entry_id"]) == log(300, "job")
    assert hits(daemon, session, "job 150 is") == [done["entry_id"]]
    assert hits(daemon, session, "worker 100 is") == ["e3"]


def test_lines_count_as_shown_only_while_the_context_has_them(daemon: Daemon) -> None:
    session = start(daemon, compaction={"keep_recent_tokens": 50})
    text = "\n".join(f"def function_{at}(argument_{at}): return {at} * argument_{at}" for at in range(60))
    read = {"name": "read_file", "arguments": {"path": "src/app.py"}}
    daemon.call("session/append", session_id=session, messages=[answering("c1", text), calling("c2")])

    again = reduce(daemon, session, text, call_id="c2", **read)
    assert "as in e3" in again["content"]

    messages = [answering("c2", again["content"]), *(user(20) for _ in range(4))]
    daemon.call("session/append", session_id=session, messages=messages)
    compacted = daemon.call("session/compact", session_id=session)
    assert compacted["compacted"]
    after = reduce(daemon, session, text, **read)
    assert "as in e3" not in after["content"]
    daemon.call("session/undo", session_id=session)
    undone = reduce(daemon, session, text, **read)
    assert "as in e3" in undone["content"]
    assert original(daemon, session, again["entry_id"]) == text


def test_an_output_that_was_reduced_counts_as_shown_before_it_is_appended(daemon: Daemon) -> None:
    session = start(daemon)
    text = "\n".join(f"def function_{at}(argument_{at}): return {at} * argument_{at}" for at in range(60))
    read = {"name": "read_file", "arguments": {"path": "src/app.py"}}
    first = reduce(daemon, session, f"{text}\nKEY = '{'QUJD' * 2000}'", call_id="c1", **read)

    second = reduce(daemon, session, text, **read)

    assert f"as in {first['entry_id']}" in second["content"]


def test_observing_changes_nothing_but_the_counts(daemon: Daemon) -> None:
    session = start(daemon)
    assert "reductions" not in daemon.call("agent/state", session_id=session)

    seen = reduce(daemon, session, LOG, call_id="c1", observe=True)

    assert (seen["content"], seen["reduced"], seen["entry_id"]) == (LOG, True, None)
    assert seen["tokens_after"] < seen["tokens_before"]
    sizes = {"tokens_before": seen["tokens_before"], "tokens_after": seen["tokens_after"]}
    counts = daemon.call("agent/state", session_id=session)["reductions"]
    assert counts == {
        "count": 0,
        "tokens_before": 0,
        "tokens_after": 0,
        "observed": {"count": 1, **sizes},
        "by_rule": {rule: {"count": 1, **sizes} for rule in seen["rules"]},
    }
    assert hits(daemon, session, "worker 100 is") == []
    appended = daemon.call("session/append", session_id=session, messages=[answering("c1", LOG)])
    assert appended["entry_ids"] == ["e3"]


def test_the_level_is_the_given_one_or_the_settings(spawn: Spawn, home: Path) -> None:
    config = home.parent / "config" / "compactd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[reduce]\nlevel = 'light'\nmin_tokens = 100000\n", "utf-8")
    daemon = spawn()
    session = start(daemon)
    settings = daemon.call("session/configure", session_id=session)["settings"]
    assert settings["reduce_level"] == {"value": "light", "source": "config.toml"}

    assert not reduce(daemon, session, LOG)["reduced"]
    daemon.call("session/configure", session_id=session, compaction={"reduce_min_tokens": 10})
    assert not reduce(daemon, session, LOG)["reduced"]
    assert reduce(daemon, session, LOG, level="default")["reduced"]
    told = daemon.call("session/configure", session_id=session, reduce={"level": "strong", "loop": None})
    assert told["settings"]["reduce_level"] == {"value": "strong", "source": "session/configure"}
    assert told["settings"]["reduce_min_tokens"]["value"] == 10
    assert reduce(daemon, session, log(90))["reduced"]
    for wrong in ({"level": "brutal"}, {"min_tokens": -1}):
        assert daemon.refusal("session/configure", session_id=session, reduce=wrong).code == -32602


def test_bad_input_is_refused_with_what_to_do(daemon: Daemon, spawn: Spawn, home: Path) -> None:
    session = start(daemon)
    given = {"session_id": session, "name": "bash", "arguments": {}, "content": "x"}

    unknown = daemon.refusal("session/reduce", **{**given, "level": "brutal"})
    assert (unknown.code, "light, default, strong" in unknown.message) == (-32602, True)
    listed = daemon.refusal("session/reduce", **{**given, "arguments": [1]})
    assert (listed.code, "object" in listed.message) == (-32602, True)
    for content in (7, ["x"], None):
        assert daemon.refusal("session/reduce", **{**given, "content": content}).code == -32602
    assert daemon.refusal("session/reduce", **{**given, "session_id": "none"}).code == 1001

    owner, reader = spawn(), spawn()
    held = start(owner)
    reader.call("session/start", session_id=held)
    assert reader.refusal("session/reduce", **{**given, "session_id": held}).code == 1004
    owner.call("session/close", session_id=held)
    assert owner.refusal("session/reduce", **{**given, "session_id": held}).code == 1001


# --- append -----------------------------------------------------------------------------------------


FORMATS: dict[str, list[dict[str, Any]]] = {
    "neutral": [calling("c9"), answering("c9", LOG, id="m9")],
    "openai": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c9", "content": LOG},
    ],
    "openai_responses": [
        {"type": "function_call", "call_id": "c9", "name": "bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c9", "output": LOG},
    ],
    "anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c9", "name": "bash", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c9", "content": [{"type": "text", "text": LOG}]},
                {"type": "text", "text": "Go on."},
            ],
        },
    ],
    "gemini": [
        {"role": "model", "parts": [{"functionCall": {"name": "bash", "args": {}, "id": "c9"}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "bash", "id": "c9", "response": {"output": LOG}}}],
        },
    ],
}


@pytest.mark.parametrize("format", FORMATS)
def test_results_of_every_format_are_reduced_as_they_are_appended(daemon: Daemon, format: str) -> None:
    session = str(daemon.call("session/start")["session_id"])

    done = daemon.call(
        "session/append", session_id=session, messages=FORMATS[format], format=format, reduce=True
    )

    (reduction,) = done["reductions"]
    assert reduction["message_entry_id"] == done["entry_ids"][1]
    assert reduction["call_id"] == "c9"
    assert reduction["tokens_after"] < reduction["tokens_before"] // 2
    assert "worker 100 is ready" in original(daemon, session, reduction["entry_id"])
    context = daemon.call("session/context", session_id=session, format=format)
    assert "worker 100 " not in str(context["messages"])
    assert f"expand {reduction['entry_id']}]" in str(context["messages"])
    assert context["tokens"] < reduction["tokens_before"] // 2


def test_without_reduce_nothing_is_reduced(daemon: Daemon) -> None:
    session = str(daemon.call("session/start")["session_id"])

    done = daemon.call("session/append", session_id=session, messages=FORMATS["neutral"])

    assert "reductions" not in done
    assert "worker 100 " in str(daemon.call("session/context", session_id=session)["messages"])


def test_a_message_that_is_sent_again_is_a_duplicate_whatever_was_reduced(daemon: Daemon) -> None:
    session = str(daemon.call("session/start")["session_id"])
    first = daemon.call("session/append", session_id=session, messages=FORMATS["neutral"], reduce=True)

    for more in ({"reduce": True}, {}):
        again = daemon.call(
            "session/append", session_id=session, messages=[answering("c9", LOG, id="m9")], **more
        )

        assert (again["entry_ids"], again["duplicates"]) == (first["entry_ids"][1:], ["m9"])
        assert again.get("reductions", first["reductions"]) == first["reductions"]
    other = daemon.refusal(
        "session/append", session_id=session, messages=[answering("c9", "another", id="m9")], reduce=True
    )
    assert other.code == -32602
    assert daemon.call("agent/state", session_id=session)["reductions"]["count"] == 1


def test_unknown_fields_and_other_blocks_of_a_reduced_message_stay(daemon: Daemon) -> None:
    session = start(daemon)
    image = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
    block = {
        "type": "tool_result",
        "call_id": "c1",
        "content": [image, {"type": "text", "text": LOG, "mine": 1}, {"type": "text", "text": "end"}],
        "extra": {"a": [1]},
    }
    message = {"role": "tool", "content": [block], "more": "x"}

    done = daemon.call("session/append", session_id=session, messages=[message], reduce=True)

    (entry,) = daemon.call("session/expand", session_id=session, entry_ids=done["entry_ids"])["entries"]
    kept = entry["message"]
    text = kept["content"][0]["content"][1].pop("text")
    assert (len(text) < len(LOG), kept["more"], kept["content"][0]["extra"]) == (True, "x", {"a": [1]})
    assert kept["content"][0]["content"] == [
        image,
        {"type": "text", "mine": 1},
        {"type": "text", "text": "end"},
    ]


def test_a_result_that_was_reduced_before_is_not_reduced_twice(daemon: Daemon) -> None:
    for shows_original in (False, True):
        session = start(daemon)
        done = reduce(daemon, session, LOG, call_id="c1")
        text = LOG if shows_original else done["content"]

        appended = daemon.call(
            "session/append", session_id=session, messages=[answering("c1", text)], reduce=True
        )

        (reduction,) = appended["reductions"]
        assert reduction["entry_id"] == done["entry_id"]
        context = daemon.call("session/context", session_id=session)["messages"]
        assert shown(context[-1]) == done["content"]
        assert daemon.call("agent/state", session_id=session)["reductions"]["count"] == 1
