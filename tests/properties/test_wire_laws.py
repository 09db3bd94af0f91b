"""The laws over the wire: any steps of a client in any order, with the daemon killed between them.

Law 4: nothing acknowledged is lost. Law 6: the newest request is in the view. Law 9: a restart changes
nothing. (docs/dev/behaviour.md, "Laws".) And law 1 on the way: every view is valid for every provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.client import Daemon
from tests.support.examples import examples
from tests.support.talk import CHARS4, Message, assistant, result, text, user
from tests.support.views import newest_request, originals_in_order, problems_of_providers, seen


class Daemons:
    """One daemon after another on the same folder."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self._home = home
        self._stack = stack
        self.now = self._spawn()
        self.sessions = 0

    def kill(self) -> None:
        """SIGKILL, and the next one."""
        self.now.kill()
        self.now = self._spawn()

    def _spawn(self) -> Daemon:
        return self._stack.enter_context(Daemon(self._home))


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    """Daemons that all examples share, each example with a session of its own."""
    with ExitStack() as stack:
        yield Daemons(tmp_path_factory.mktemp("laws") / "home", stack)


@dataclass
class Client:
    """What a client knows: its messages, and the calls that wait for results."""

    daemons: Daemons
    session: str
    messages: list[Message] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def call(self, method: str, **params: Any) -> Any:
        return self.daemons.now.call(method, session_id=self.session, **params)

    def message(self, kind: str, tokens: int) -> Message:
        """The next message of a kind; texts are told apart by their number."""
        number = len(self.messages)
        match kind:
            case "request":
                return {"role": "user", "content": f"request {number}: {text(tokens, number)}"}
            case "synthetic":
                return user(tokens, number, meta={"synthetic": True})
            case "answer":
                return assistant(tokens, seed=number)
            case "call":
                self.waiting = [f"t{number}.{n}" for n in range(1 + tokens % 3)]
                return assistant(tokens + 10, *self.waiting, seed=number)
            case _:
                return result(self.waiting.pop(0) if self.waiting else f"nobody{number}", tokens, number)

    def append(self, kinds: list[tuple[str, int]]) -> None:
        new = []
        for kind, tokens in kinds:
            new.append(self.message(kind, tokens))
            self.messages.append(new[-1])
        ids = self.call("session/append", messages=new)["entry_ids"]
        assert len(ids) == len(set(ids)) == len(new)

    def change(self, method: str, **params: Any) -> None:
        """A compaction, undo or redo. Where there is nothing to do, or nothing that fits, nothing changes."""
        before = seen(self.daemons.now, self.session)
        answer = self.daemons.now.answer(
            self.daemons.now.ask(method, session_id=self.session, **params)
        ).value
        if "error" in answer:
            assert answer["error"]["code"] in (1008, 1011)
        elif answer["result"].get("compacted", True):
            return
        after = seen(self.daemons.now, self.session)
        assert (after.context, after.state) == (before.context, before.state)

    def restart(self, how: str) -> None:
        before = seen(self.daemons.now, self.session)
        if how == "kill":
            self.daemons.kill()
        else:
            self.call("session/close")
        assert self.call("session/start")["resumed"] is True
        assert seen(self.daemons.now, self.session) == before

    def laws_hold(self) -> None:
        daemon = self.daemons.now
        now = seen(daemon, self.session)
        assert originals_in_order(now.history, self.messages) == len(self.messages)
        request = newest_request(self.messages)
        view = self.call("session/context")["messages"]
        if request is not None:
            assert request["content"] in [m["content"] for m in view if m["role"] == "user"]
        assert problems_of_providers(daemon, self.session) == {}


MESSAGES = st.tuples(
    st.sampled_from(("request", "answer", "call", "result", "result", "synthetic")), st.integers(1, 250)
)
STEPS = st.one_of(
    st.tuples(st.just("append"), st.lists(MESSAGES, min_size=1, max_size=6)),
    st.tuples(st.just("append"), st.lists(MESSAGES, min_size=4, max_size=12)),
    st.tuples(st.just("compact"), st.sampled_from((1, 50, 300, 1000))),
    st.tuples(st.sampled_from(("force", "undo", "redo", "close", "kill", "turn")), st.just(0)),
)


# Not shrunk: an example is short, and shrinking one by killing daemons would take minutes.
@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.reuse, Phase.generate),
)
@given(steps=st.lists(STEPS, min_size=5, max_size=11))
def test_whatever_a_client_does_nothing_is_lost_the_newest_request_stays_and_a_restart_changes_nothing(
    daemons: Daemons, steps: list[tuple[str, Any]]
) -> None:
    daemons.sessions += 1
    client = Client(daemons, f"s{daemons.sessions}")
    client.call("session/start", compaction={"context_window": 4000, **CHARS4}, durability="os")

    for step, value in steps:
        match step:
            case "append":
                client.append(value)
            case "compact":
                client.change("session/compact", keep_recent=value)
            case "force":
                client.change("session/compact", force=True)
            case "turn":
                client.change("turn/begin")
            case "close" | "kill":
                client.restart(step)
            case _:
                client.change(f"session/{step}")
        client.laws_hold()

    client.restart("kill")
    client.call("session/close")
