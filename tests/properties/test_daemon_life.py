"""One session over many daemons: random requests in random order, with kills, restarts and torn files.

Laws 1, 2, 3, 4, 5, 6 and 9 over the wire, under every profile (docs/dev/behaviour.md, "Laws"). At the end of
each life its journal is cut at any byte, as a disk that lies does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compactd.core.budget.profiles import PROFILES
from compactd.storage.paths import file_stem
from tests.support.client import Daemon
from tests.support.examples import examples
from tests.support.talk import Message, assistant, result, text, user
from tests.support.views import newest_request, originals_in_order, problems_of_providers, seen

WINDOWS = st.sampled_from((2_500, 6_000, 200_000))
KINDS = st.lists(
    st.tuples(
        st.sampled_from(
            ("request", "request", "answer", "call", "call", "result", "result", "bash", "synthetic")
        ),
        st.integers(0, 400),
    ),
    min_size=2,
    max_size=9,
)
BUDGETS = st.one_of(
    st.fixed_dictionaries({"keep_recent": st.sampled_from((1, 100, 700))}),
    st.fixed_dictionaries({"target_tokens": st.sampled_from((150, 500, 2_000))}),
    st.fixed_dictionaries({"keep_messages": st.integers(1, 4)}),
    st.just({"force": True}),
)
AT = st.integers(0, 40)
REFUSALS = (1008, 1011)
"""Nothing fits, nothing to undo: then nothing changed."""


class Homes:
    """Daemons one after another on one folder, for all lives."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.home = home
        self._stack = stack
        self.names = count(1)
        self.daemon = self._spawn()

    def kill(self) -> None:
        """SIGKILL."""
        self.daemon.kill()

    def next(self) -> Daemon:
        """The next one."""
        self.daemon = self._spawn()
        return self.daemon

    def _spawn(self) -> Daemon:
        return self._stack.enter_context(Daemon(self.home))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    with ExitStack() as stack:
        yield Homes(tmp_path_factory.mktemp("life") / "home", stack)


class DaemonLife(RuleBasedStateMachine):
    """A state machine that keeps what a client knows of its session."""

    homes: Homes

    def __init__(self) -> None:
        super().__init__()
        self.name = f"life{next(self.homes.names)}"
        self.messages: list[Message] = []
        self.ids: list[str] = []
        self.path: list[Message] = []
        """The messages of the branch that the session is on."""
        self.has_target = False
        """Whether a compaction had a target, so that the newest request may be condensed."""
        self.waiting: list[str] = []
        self.cut = 1.0
        """The share of the journal that is left at the end of the life."""

    @initialize(profile=st.sampled_from(tuple(PROFILES)), window=WINDOWS, first=KINDS, cut=st.floats(0, 1))
    def start(self, profile: str, window: int, first: list[tuple[str, int]], cut: float) -> None:
        """A session under one of the profiles, with something in it."""
        self.cut = cut
        self.call("session/start", durability="os", compaction={"profile": profile, "context_window": window})
        self.append(first)

    def call(self, method: str, **params: Any) -> Any:
        return self.homes.daemon.call(method, session_id=self.name, **params)

    def changed(self, method: str, **params: Any) -> Any:
        """A step; where it is refused, nothing changes."""
        before = seen(self.homes.daemon, self.name)
        done = self.tried(method, **params)
        if done is None:
            after = seen(self.homes.daemon, self.name)
            assert (after.context, after.state) == (before.context, before.state)
        return done

    def tried(self, method: str, **params: Any) -> Any:
        """A step, or none where it is refused."""
        daemon = self.homes.daemon
        answer = daemon.answer(daemon.ask(method, session_id=self.name, **params)).value
        assert answer.get("error", {"code": REFUSALS[0]})["code"] in REFUSALS
        return answer.get("result")

    # --- steps ----------------------------------------------------------------------------------------

    @rule(kinds=KINDS)
    def append(self, kinds: list[tuple[str, int]]) -> None:
        new = [
            self._message(kind, tokens, len(self.messages) + at) for at, (kind, tokens) in enumerate(kinds)
        ]
        ids = self.call("session/append", messages=new)["entry_ids"]
        assert len(set(ids)) == len(new)
        self.messages += new
        self.path += new
        self.ids += ids

    def _message(self, kind: str, tokens: int, number: int) -> Message:
        match kind:
            case "request":
                return {"role": "user", "content": f"request {number}: größer 缓存 {text(tokens, number)}"}
            case "synthetic":
                return user(tokens, number, meta={"synthetic": True})
            case "bash":
                return {
                    "role": "user",
                    "content": f"$ make {number}\n{text(tokens, number)}",
                    "meta": {"kind": "bash_execution"},
                }
            case "call":
                self.waiting = [f"t{number}.{at}" for at in range(1 + tokens % 3)]
                return assistant(tokens + 10, *self.waiting, seed=number)
            case "result":
                name = self.waiting.pop(0) if self.waiting else f"nobody{number}"
                return result(name, 3 * tokens, number)
            case _:
                return assistant(tokens, seed=number)

    @rule(tokens=st.integers(1, 9_000), ago=st.integers(0, 2))
    def end(self, tokens: int, ago: int) -> None:
        """An answer, with the report of a context that may be an older one."""
        epoch = self.call("session/context")["epoch"]
        answer = assistant(20, seed=len(self.messages))
        ids = self.call(
            "turn/end",
            messages=[answer],
            usage={"input_tokens": tokens, "output_tokens": 20},
            epoch=max(1, epoch - ago),
        )["entry_ids"]
        self.messages.append(answer)
        self.path.append(answer)
        self.ids += ids

    @rule(budget=BUDGETS)
    def compact(self, budget: dict[str, Any]) -> None:
        before = self.call("session/context")["tokens"]
        self.has_target = self.has_target or "target_tokens" in budget
        done = self.changed("session/compact", **budget)
        if done is None:
            return
        after = self.call("session/context")["tokens"]
        assert (done["tokens_before"], done["tokens_after"]) == (before, after)
        assert after < before if done["compacted"] else after == before
        assert self.call("session/compact", **budget)["compacted"] is False

    @rule(how=st.sampled_from(("session/undo", "session/undo", "session/redo", "session/prune")))
    def rewind(self, how: str) -> None:
        self.changed(how)

    @rule()
    def begin(self) -> None:
        self.tried("turn/begin")

    @rule(told=st.sampled_from(("prompt is too long: 2900 tokens > 2000 maximum", "context_length_exceeded")))
    def error(self, told: str) -> None:
        for _ in range(4):
            if not self.call("turn/error", error={"status": 400, "message": told})["retry"]:
                return
        raise AssertionError("a fourth smaller request")

    @rule(at=AT)
    def pin(self, at: int) -> None:
        self.call("session/pin", entry_ids=[self.ids[at % len(self.ids)]], pinned=at % 3 > 0)

    @rule(profile=st.sampled_from(tuple(PROFILES)), window=WINDOWS)
    def configure(self, profile: str, window: int) -> None:
        self.call("session/configure", compaction={"profile": profile, "context_window": window})

    @rule(model=st.sampled_from(("anthropic/claude-sonnet-4-5", "openai/gpt-5", "google/gemini-2.5-flash")))
    def switch(self, model: str) -> None:
        self.tried("model/set", model=model)

    @precondition(lambda self: len(self.ids) > 6)
    @rule(at=st.integers(0, 5))
    def branch(self, at: int) -> None:
        """Goes back a few messages."""
        back = max(1, len(self.path) - at)
        target = self.ids[self.messages.index(self.path[back - 1])]
        self.call("session/branch", entry_id=target)
        del self.path[back:]

    # --- restarts -------------------------------------------------------------------------------------

    @rule(how=st.sampled_from(("kill", "close", "close", "kill in a compaction")))
    def restart(self, how: str) -> None:
        """Law 9."""
        before = seen(self.homes.daemon, self.name)
        if how == "kill in a compaction":
            self.homes.daemon.ask("session/compact", session_id=self.name, keep_recent=50)
        if how == "close":
            self.call("session/close")
        else:
            self.homes.kill()
            self.homes.next()
        started = self.call("session/start")
        assert started["resumed"] is True
        if how != "kill in a compaction":
            assert seen(self.homes.daemon, self.name) == before

    def teardown(self) -> None:
        if not self.ids:
            return
        self.restart("kill")
        self.laws_hold(self.messages)
        self.tear()

    # --- laws -----------------------------------------------------------------------------------------

    def laws_hold(self, messages: list[Message]) -> None:
        """Laws 1, 4 and 6."""
        daemon = self.homes.daemon
        assert originals_in_order(seen(daemon, self.name).history, messages) == len(messages)
        assert problems_of_providers(daemon, self.name) == {}
        request = newest_request(self.path)
        if request is not None and messages is self.messages:
            view = self.call("session/context")["messages"]
            at = next(at for at, message in enumerate(self.messages) if message is request)
            (shown,) = [message for message in view if message.get("entry_id") == self.ids[at]]
            assert shown["role"] == "user"
            if not self.has_target:
                assert shown["content"] == request["content"]
            elif shown["content"] != request["content"]:
                assert f"session/expand {self.ids[at]} shows all" in str(shown["content"])

    def tear(self) -> None:
        """Law 5: the journal cut at any byte opens to a prefix of what was appended."""
        self.homes.kill()
        journal = self.homes.home / "sessions" / f"{file_stem(self.name)}.jsonl"
        content = journal.read_bytes()
        first = content.index(b"\n") + 1
        kept = content[: first + round((len(content) - first) * self.cut)]
        journal.write_bytes(kept)
        self.homes.next()
        started = self.call("session/start")
        assert started["resumed"] is True
        # A last record that lacks but its line's end is whole.
        if any("incomplete record" in told for told in started["warnings"]):
            assert kept[-1:] != b"\n"
        whole_lines = kept.count(b'"type":"message"', 0, kept.rindex(b"\n") + 1)
        history = self.call("session/history")["entries"]
        left = [entry["entry_id"] for entry in history if entry["kind"] == "message"]
        left = [entry_id for entry_id in left if entry_id in self.ids]
        assert left == self.ids[: len(left)]
        assert whole_lines <= len([entry for entry in history if entry["kind"] == "message"])
        self.laws_hold(self.messages[: len(left)])
        self.call("session/close")


def test_one_session_over_many_daemons_keeps_the_laws(homes: Homes) -> None:
    DaemonLife.homes = homes

    # Not shrunk: a life is short, and shrinking one by killing daemons would take minutes.
    run_state_machine_as_test(
        DaemonLife,
        settings=settings(
            max_examples=examples(7),
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.reuse, Phase.generate),
        ),
    )
