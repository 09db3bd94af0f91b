"""The daemon is killed during its own agent loop, started again, and continues.

Nothing that was acknowledged is missing, and the provider sees valid requests only. (Laws 1 and 4.)
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.properties.loop_play import BY_CODE, IN_STREAM, SILENT, Play, result
from tests.properties.loop_requests import problems_of
from tests.support.client import Daemon, Got
from tests.support.loopback import Loopback
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.talk import CHARS4, text

WINDOW = 2_500
PATIENCE_TURNS = 12
"""Turns of waiting within which an event must arrive."""

WIRE = "anthropic"
NAME = "s"

KINDS = (
    "agent_start",
    "turn_start",
    "message_start",
    "message_delta",
    "message_end",
    "turn_end",
    "usage_update",
    "tool_execution_start",
    "tool_execution_end",
    "overflow_detected",
    "compaction_start",
    "compaction_progress",
    "compaction_end",
    "agent_end",
    "tool/execute",
)
"""The kinds of messages after which the daemon is killed, as soon as the client has seen one."""

TROUBLED = ("overflow_detected", "compaction_start", "compaction_progress", "compaction_end")


@dataclass
class Life:
    """One conversation over several daemons, and what they acknowledged."""

    home: Path
    server: Loopback
    play: Play
    prompts: list[str] = field(default_factory=list)
    appended: dict[str, str] = field(default_factory=dict)
    """The text of each entry that the client appended itself, by entry id."""
    prompt: int = 0

    def spawn(self) -> Daemon:
        """The next daemon, with the session open."""
        daemon = Daemon(self.home, env=environment(WIRE, self.server.base_url))
        daemon.call(
            "session/start",
            session_id=NAME,
            model=MODELS[WIRE],
            tools=TOOLS,
            durability="os",
            compaction={**CHARS4, "context_window": WINDOW},
        )
        return daemon

    def until_killed(self, daemon: Daemon, kind: str, skip: int) -> None:
        """Prompts, and appends between them, until `kind` came and `skip` more of it; then SIGKILL."""
        talk = Talk(daemon, NAME, lambda name, arguments: {"content": result(self.play.prompt)})
        trouble = (BY_CODE, SILENT, IN_STREAM)
        try:
            for turn in range(PATIENCE_TURNS):
                if turn % 2 and kind in TROUBLED:
                    self.play.trouble[self.prompt, 1] = trouble[turn // 2 % 3]
                if self._turn_is_seen(daemon, talk, kind, skip):
                    daemon.kill()
                    return
            raise AssertionError(f"no {kind} in {PATIENCE_TURNS} turns")
        finally:
            talk.stop()
            daemon.__exit__()

    def _turn_is_seen(self, daemon: Daemon, talk: Talk, kind: str, skip: int) -> bool:
        said = f"note {self.prompt}: {text(30, self.prompt)}"
        message = {"role": "user", "content": said}
        (entry,) = daemon.call("session/append", session_id=NAME, messages=[message])["entry_ids"]
        self.appended[entry] = said
        words = self.play.begin(self.prompt)
        self.prompt += 1
        turn = talk.prompt(words)
        self.prompts.append(words)

        def is_kind(got: Got) -> bool:
            method = got.value.get("method")
            return method == kind or (method == "agent/event" and got.value["params"]["type"] == kind)

        def is_seen(got: Got) -> bool:
            return is_kind(got) and len([one for one in daemon.received[: got.at + 1] if is_kind(one)]) > skip

        def is_end(got: Got) -> bool:
            params = got.value.get("params", {})
            return params.get("type") in ("agent_end", "error") and params.get("turn_id") == turn

        return is_seen(daemon.wait(lambda got: is_seen(got) or is_end(got), f"{kind} or the end of {turn}"))

    def check(self, daemon: Daemon) -> None:
        """Everything acknowledged is here; every request was valid."""
        history = daemon.call("session/history", session_id=NAME)["entries"]
        texts = {e["entry_id"]: e["message"]["content"] for e in history if e["kind"] == "message"}
        state = daemon.call("agent/state", session_id=NAME)
        prompts = [one for one in texts.values() if one in self.prompts]

        assert {entry: texts.get(entry) for entry in self.appended} == self.appended
        assert prompts + self.prompts[len(prompts) :] == self.prompts
        assert len(self.prompts) - len(prompts) == state["queued"]
        assert [found for seen in self.server.requests if (found := problems_of(seen))] == []
        assert state["status"] == "idle"
        assert state["compaction"]["running"] is False


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    play = Play(window=WINDOW)
    with Loopback(window=WINDOW, reply=play.reply) as server:
        yield Life(home=tmp_path / "home", server=server, play=play)


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_every_kind_of_step_it_goes_on_without_a_loss(life: Life, seed: int) -> None:
    chance = random.Random(seed)
    for kind in chance.sample(KINDS, len(KINDS)):
        daemon = life.spawn()
        life.check(daemon)
        life.until_killed(daemon, kind, chance.randrange(3))

    with life.spawn() as daemon:
        life.check(daemon)
        talk = Talk(daemon, NAME, lambda name, arguments: {"content": "done"})
        words = life.play.begin(life.prompt)
        life.prompts.append(words)
        end = talk.ask(words)
        talk.stop()
        life.check(daemon)

        assert (end["type"], end["stop_reason"]) == ("agent_end", "stop")
        assert daemon.call("agent/state", session_id=NAME)["queued"] == 0
        assert words in life.server.requests[-1].raw.decode()
