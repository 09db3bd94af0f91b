"""The daemon's own agent loop under every profile and wire format, with a server whose window is smaller than
anyone said. (docs/dev/behaviour.md, "Overflow", laws 1, 3 and 6.)"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from compactd.core.budget.profiles import PROFILES
from tests.properties.loop_requests import problems_of
from tests.support.client import Daemon
from tests.support.loopback import Answer, Fail, Loopback, Seen, Step
from tests.support.own_loop import MODELS, TOOLS, WIRES, Talk, environment
from tests.support.talk import turns

SAID_WINDOW = 4_000
REAL_WINDOW = 1_500
"""The server's window, as it counts tokens."""
ATTEMPTS = 4
"""The first request and three smaller ones."""
WORDS = "What is left to do? Do not touch the cache."


class Server:
    """A provider that takes what fits, or nothing at all."""

    takes_any = True

    def reply(self, seen: Seen) -> Step:
        """An answer, or the refusal of whatever comes."""
        if self.takes_any:
            return Answer(text="Nothing is left.", count_input=True)
        return Fail(400, '{"error":{"message":"prompt is too long","code":"context_length_exceeded"}}')


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Loopback, Server]]:
    server = Server()
    with Loopback(window=REAL_WINDOW, reply=server.reply) as loopback:
        env = {name: value for wire in WIRES for name, value in environment(wire, loopback.base_url).items()}
        with Daemon(tmp_path_factory.mktemp("profiles") / "home", env=env) as daemon:
            yield daemon, loopback, server


@pytest.mark.parametrize("takes_any", [True, False])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_prompt_ends_after_at_most_four_ever_smaller_valid_requests(
    profile: str, wire: str, takes_any: bool, shared: tuple[Daemon, Loopback, Server]
) -> None:
    daemon, loopback, server = shared
    server.takes_any = takes_any
    loopback.forget()
    daemon.received.clear()
    name = daemon.call(
        "session/start",
        # A name of its own: what a rejection teaches of one model is kept.
        model=f"{MODELS[wire]}-{profile}-{takes_any}",
        tools=TOOLS,
        durability="os",
        compaction={"profile": profile, "context_window": SAID_WINDOW, "strategy": "extract"},
    )["session_id"]
    daemon.call("session/append", session_id=name, messages=turns(12, 90))
    talk = Talk(daemon, name)

    end = talk.ask(WORDS)

    talk.stop()
    sizes = [seen.tokens for seen in loopback.requests]
    assert end["type"] == ("agent_end" if takes_any else "error")
    assert 1 < len(sizes) <= ATTEMPTS
    assert all(later < earlier for earlier, later in pairwise(sizes))
    assert [found for seen in loopback.requests if (found := problems_of(seen))] == []
    assert all(WORDS in seen.raw.decode() for seen in loopback.requests)
    daemon.call("session/close", session_id=name)
