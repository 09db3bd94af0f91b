"""The daemon's own loop over sixty turns with tools, for each wire, with a model that runs out of room.

It overflows in the provider's words, by its code, in silence, and in the middle of a stream; every request
that the server saw is written down. (docs/dev/behaviour.md, "Overflow", laws 1, 3, 4, 6.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.properties.loop_events import problems_of_events
from tests.properties.loop_play import TROUBLE, WINDOW, Play, result, said
from tests.properties.loop_requests import is_summary, problems_of
from tests.support.client import Daemon
from tests.support.loopback import Loopback, Seen
from tests.support.own_loop import MODELS, TOOLS, WIRES, Talk, environment
from tests.support.talk import CHARS4

TURNS = 60


@dataclass
class Played:
    """What a test can check after a play: requests, events and history."""

    wire: str
    play: Play
    requests: list[Seen]
    newest: list[str]
    """The user's newest text at the time of each request."""
    ends: list[dict[str, Any]]
    events: list[dict[str, Any]]
    history: list[dict[str, Any]]
    executed: int

    @property
    def asked(self) -> list[Seen]:
        """The conversation's own requests."""
        return [seen for seen in self.requests if not is_summary(seen)]

    def of(self, type: str) -> list[dict[str, Any]]:
        """The events of a type."""
        return [event for event in self.events if event["type"] == type]


@pytest.fixture(scope="module", params=WIRES)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    wire: str = request.param
    play = Play(trouble=dict(TROUBLE))
    home = tmp_path_factory.mktemp(wire) / "home"
    with (
        Loopback(window=WINDOW, reply=play.reply) as server,
        Daemon(home, env=environment(wire, server.base_url)) as daemon,
    ):
        name = daemon.call(
            "session/start",
            model=MODELS[wire],
            system_prompt="You go through a list.",
            tools=TOOLS,
            durability="os",
            compaction={**CHARS4, "context_window": WINDOW},
        )["session_id"]
        talk = Talk(daemon, name, lambda tool, arguments: {"content": result(play.prompt)})
        ends, newest = [], []
        for turn in range(TURNS):
            ends.append(talk.ask(play.begin(turn)))
            newest += [said(turn)] * (len(server.requests) - len(newest))
        talk.stop()
        yield Played(
            wire=wire,
            play=play,
            requests=server.requests,
            newest=newest,
            ends=ends,
            events=daemon.events(name),
            history=daemon.call("session/history", session_id=name)["entries"],
            executed=len(talk.executed),
        )


def test_every_turn_is_answered(played: Played) -> None:
    assert [(end["type"], end.get("stop_reason")) for end in played.ends] == [("agent_end", "stop")] * TURNS


def test_it_ran_out_of_room_four_times_and_was_compacted_eight_times(played: Played) -> None:
    ended = played.of("compaction_end")

    assert played.play.trouble == {}
    assert len(played.of("overflow_detected")) >= 4
    assert len([one for one in ended if one["status"] == "completed"]) >= 8
    assert "summarize" in {one["result"]["strategy"] for one in ended}
    assert {one["status"] for one in ended} <= {"completed", "skipped"}
    assert {one["trigger"] for one in played.of("compaction_start")} == {
        "threshold",
        "overflow",
        "silent_overflow",
    }


def test_every_request_is_valid_and_over_the_wire_that_was_meant(played: Played) -> None:
    found = {at: problems_of(seen) for at, seen in enumerate(played.requests)}

    assert {seen.wire for seen in played.requests} == {played.wire}
    assert {at: problems for at, problems in found.items() if problems} == {}


def test_what_the_server_took_was_within_the_window_and_hardly_anything_else_was_sent(played: Played) -> None:
    above = [seen.tokens for seen in played.requests if not seen.accepted]

    assert all(seen.tokens <= WINDOW for seen in played.requests if seen.accepted)
    assert len(above) <= 2


def test_what_follows_a_rejection_is_smaller(played: Played) -> None:
    refused = {id(seen) for seen in played.play.rejected}
    pairs = [
        (one.tokens, after.tokens)
        for one, after in zip(played.asked, played.asked[1:], strict=False)
        if id(one) in refused or not one.accepted
    ]

    assert len(pairs) >= 3
    assert [(one, after) for one, after in pairs if after >= one] == []


def test_no_finished_answer_is_asked_for_again_and_no_call_is_dropped(played: Played) -> None:
    refused = len(played.play.rejected) + len([seen for seen in played.requests if not seen.accepted])
    answers = [m for m in played.history if m["kind"] == "message" and m["message"]["role"] == "assistant"]
    results = [m for m in played.history if m["kind"] == "message" and m["message"]["role"] == "tool"]

    assert played.play.answers == [(turn, step) for turn in range(TURNS) for step in (0, 1)]
    assert len(played.asked) == 2 * TURNS + refused
    assert len(answers) == 2 * TURNS
    assert len(results) == played.executed == TURNS + len(range(0, TURNS, 7))


def test_the_newest_words_of_the_user_are_in_every_request(played: Played) -> None:
    missing = [
        seen.tokens
        for seen, words in zip(played.requests, played.newest, strict=True)
        if not is_summary(seen) and words not in seen.raw.decode()
    ]

    assert missing == []


def test_every_start_has_its_end(played: Played) -> None:
    kinds = [event["type"] for event in played.events]

    assert problems_of_events(played.events) == []
    for start, end in (
        ("agent_start", "agent_end"),
        ("turn_start", "turn_end"),
        ("message_start", "message_end"),
        ("tool_execution_start", "tool_execution_end"),
        ("compaction_start", "compaction_end"),
    ):
        assert kinds.count(start) == kinds.count(end) > 0, start
