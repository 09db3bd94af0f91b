"""The provider on loopback that all frameworks talk to: it plays a conversation, and refuses what its window
is too small for.

    with Provider() as provider:
        for request in provider.asks():
            ...  # any client of OpenAI at `provider.openai_url`, of Anthropic at `provider.anthropic_url`, or
            ...  # of Gemini at `provider.gemini_url`
    assert not broken(provider)  # tests.frameworks.support.laws

It speaks Chat Completions, Responses (with `/responses/compact` and `truncation: auto`), Messages, and
Gemini's generateContent, streamed or not. It refuses with the provider's own error for a prompt that is too
long, and reports its count as usage.

The model does the next step of the newest request that it can see. It does a step again if neither the call's
result nor its fact is in the request. A request without the conversation's tools is one for a summary: the
model answers with all facts that it can see in it, unless it is a model that keeps none (`keeps=False`).
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.frameworks.support import truncation
from tests.frameworks.support.reading import (
    call_name,
    items_of,
    sealed,
    tokens_in,
    tokens_of,
    tools_of,
    visible,
)
from tests.frameworks.support.talk import Talk, ToolUse, talk
from tests.support.loopback import Answer, Call, Fail, Loopback, Seen
from tests.support.loopback.script import Step
from tests.support.loopback.writing import Json, line

WINDOW = 8_000
MODEL = "loopback-1"
"""A model that no list knows: neither a framework's nor compactd's."""
MAX_REPEATS = 2
"""How often the model does a step again whose result it does not see."""
WHOLE = talk()
RECALL = "recall"
"""The name of compactd's recall tool."""


@dataclass(frozen=True)
class Totals:
    """What a conversation cost, as the provider saw it."""

    requests: int
    """All requests for an answer, refused ones included."""
    rejections: int
    summaries: int
    """Requests for a summary that were answered, also those to `/responses/compact`."""
    input_tokens: int
    """Of all answered requests, those for summaries included."""
    summary_tokens: int
    """Those of requests for summaries."""
    largest: int
    """The largest answered request, in tokens."""
    tasks: int
    """Requests of the user whose last words the model has said."""
    turns: int
    """Tool turns that the model has done."""
    facts: int
    """Facts in the last answer of the last request."""
    recalls: int
    """Calls of the recall tool."""


class Provider:
    """The provider. Use it with `with`. Everything it received is in `requests`."""

    def __init__(
        self,
        talk: Talk = WHOLE,
        *,
        window: int | None = WINDOW,
        recalls: int = 0,
        keeps: bool = True,
        is_aside: Callable[[Seen], bool] | None = None,
        port: int = 0,
    ) -> None:
        """`recalls`: how many times the model uses compactd's recall tool, if it has it, before its last
        answer. `keeps`: whether its summaries contain the facts that it saw. `is_aside` says which requests
        are no turns of the conversation; by default, those without its tools."""
        self.talk = talk
        self.window = window
        self.turns: list[Seen] = []
        """The answered requests of the conversation."""
        self.asides: list[Seen] = []
        """The answered requests for summaries."""
        self.issued: dict[str, tuple[int, ToolUse]] = {}
        """id -> (number of the lot, call) of each call, in order."""
        self.answers: list[str] = []
        """The last words of each request that was finished."""
        self.recalled: list[str] = []
        """The queries of the calls of the recall tool."""
        self.server = Loopback(window=window, count=self._count, reply=self._reply, port=port)
        self._asked = -1
        self._asked_at: dict[int, int] = {}
        """id of a request's body -> number of the user's newest request then."""
        self._is_aside = is_aside or (lambda seen: not tools_of(seen.body) & {use.name for use in talk.uses})
        self._max_recalls = recalls
        self._keeps = keeps
        self._lock = threading.Lock()
        self._lot = 0
        self._step = 0
        self._newest: tuple[str, ...] = ()
        """The ids of the newest step's calls."""
        self._repeats = 0
        self._finished: set[int] = set()
        self._done_turns: set[tuple[int, int]] = set()
        self._number = 0

    def __enter__(self) -> Provider:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    @property
    def anthropic_url(self) -> str:
        """Return the base URL for clients of Anthropic."""
        return self.server.base_url

    @property
    def gemini_url(self) -> str:
        """Return the base URL for clients of Gemini."""
        return self.server.base_url

    @property
    def openai_url(self) -> str:
        """Return the base URL for clients of OpenAI."""
        return f"{self.server.base_url}/v1"

    @property
    def requests(self) -> list[Seen]:
        """Return every request, in order of arrival."""
        return self.server.requests

    @property
    def rejected(self) -> list[Seen]:
        """Return the requests that were larger than the window."""
        return [seen for seen in self.requests if not seen.accepted]

    def asks(self, first: int = 0) -> Iterator[str]:
        """Yield the words of the user, one request after the other, and note which one is the newest."""
        for at in range(first, len(self.talk.requests)):
            yield self.ask(at)

    def ask(self, at: int) -> str:
        """Return the user's request number `at`, from 0. It is the newest one from now on."""
        self._asked = at
        return self.talk.requests[at]

    def newest(self, seen: Seen) -> int:
        """Return the number of the user's newest request when the request `seen` came."""
        return self._asked_at.get(id(seen.body), self._lot)

    @property
    def totals(self) -> Totals:
        """Return what the conversation cost so far."""
        answered = [*self.turns, *self.asides]
        return Totals(
            requests=sum(bool(seen.wire) for seen in self.requests),
            rejections=len(self.rejected),
            summaries=len(self.asides),
            input_tokens=sum(seen.tokens for seen in answered),
            summary_tokens=sum(seen.tokens for seen in self.asides),
            largest=max((seen.tokens for seen in answered), default=0),
            tasks=len(self._finished),
            turns=len(self._done_turns),
            facts=len(self.talk.known(self.answers[-1])) if len(self.talk.lots) - 1 in self._finished else 0,
            recalls=len(self.recalled),
        )

    # --- what the model does ----------------------------------------------------------------------------

    def _count(self, body: Json) -> int:
        if self._asked >= 0:
            self._asked_at[id(body)] = self._asked
        return tokens_in(truncation.apply(body, self.window))

    def _reply(self, seen: Seen) -> Step:
        with self._lock:
            self._number += 1
            body = truncation.apply(seen.body, self.window)
            if seen.path.partition("?")[0].endswith("/compact"):
                self.asides.append(seen)
                return Fail(200, line(self._compacted(body, seen.tokens)))
            if self._is_aside(seen):
                self.asides.append(seen)
                return self._says(self._summary(body), seen)
            self.turns.append(seen)
            return self._turn(body, seen)

    def _turn(self, body: Json, seen: Seen) -> Answer:
        text = visible(body)
        newest = max((at for at, request in enumerate(self.talk.requests) if request in text), default=0)
        if newest > self._lot:
            self._lot, self._step, self._newest, self._repeats = newest, 0, (), 0
        elif self._newest and self._repeats < MAX_REPEATS and not self._sees_results(body, text):
            self._step -= 1
            self._repeats += 1
        else:
            self._repeats = 0
        lot = self.talk.lots[self._lot]
        if self._step < len(lot.turns):
            self._done_turns.add((self._lot, self._step))
            return self._uses(lot.turns[self._step], seen)
        self._newest = ()
        if self._lot == len(self.talk.lots) - 1 and self._wants_to_recall(seen, text):
            return self._recalls(text, seen)
        words = lot.done
        if self._lot == len(self.talk.lots) - 1:
            words = "\n".join((words, *(f"{name}: {value}" for name, value in self.talk.known(text).items())))
        self._finished.add(self._lot)
        self.answers.append(words)
        return self._says(words, seen)

    def _sees_results(self, body: Json, text: str) -> bool:
        results = {call for item in items_of(body) for call, _ in item.results}
        return all(
            call in results or self.talk.facts[self.issued[call][1].fact] in text for call in self._newest
        )

    def _uses(self, uses: tuple[ToolUse, ...], seen: Seen) -> Answer:
        self._step += 1
        calls = []
        for use in uses:
            made = self._call(use.name, {"number": use.number}, seen)
            self.issued[made.id] = (self._lot, use)
            calls.append(made)
        self._newest = tuple(call.id for call in calls)
        return self._answer("", tuple(calls), seen)

    def _wants_to_recall(self, seen: Seen, text: str) -> bool:
        return (
            len(self.recalled) < self._max_recalls
            and RECALL in tools_of(seen.body)
            and len(self.talk.known(text)) < len(self.talk.facts)
        )

    def _recalls(self, text: str, seen: Seen) -> Answer:
        """Return a call of the recall tool for the first fact that is missing and was not looked up yet. The
        model also notes what the look-up before this one gave."""
        known = self.talk.known(text)
        noted = self.recalled[-1] if self.recalled else ""
        name = next(
            (name for name in self.talk.facts if name not in known and name not in self.recalled),
            next(name for name in self.talk.facts if name not in known),
        )
        self.recalled.append(name)
        words = f"Noted: {noted}: {known[noted]}." if noted in known else ""
        return self._answer(words, (self._call(RECALL, {"query": name}, seen),), seen)

    def _summary(self, body: Json) -> str:
        facts = self.talk.known(visible(body)) if self._keeps else {}
        return "\n".join(
            ("The work on the lots goes on.", *(f"- {name}: {value}" for name, value in facts.items()))
        )

    def _compacted(self, body: Json, tokens: int) -> Json:
        """Return the answer to `/responses/compact`: the user's messages, and all facts, sealed."""
        summary = self._summary(body)
        given = body.get("input")
        users = [item for item in given if item.get("role") == "user"] if isinstance(given, list) else []
        item = {"id": f"cmp_{self._number}", "type": "compaction", "encrypted_content": sealed(summary)}
        return {
            "id": f"resp_{self._number}",
            "object": "response.compaction",
            "created_at": 1_790_000_000,
            "output": [*({"type": "message", "status": "completed", **user} for user in users), item],
            "usage": {
                "input_tokens": tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": tokens_of(summary),
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": tokens + tokens_of(summary),
            },
        }

    def _call(self, name: str, arguments: Json, seen: Seen) -> Call:
        if seen.wire == "gemini":
            return Call(name, json.dumps(arguments), id=call_name(name, arguments))
        number = len(self.issued) + len(self.recalled)
        start = "toolu_" if seen.wire == "anthropic" else "call_"
        return Call(name, json.dumps(arguments), id=f"{start}{number:020}")

    def _says(self, text: str, seen: Seen) -> Answer:
        return self._answer(text, (), seen)

    def _answer(self, text: str, calls: tuple[Call, ...], seen: Seen) -> Answer:
        return Answer(
            text=text,
            calls=calls,
            count_input=True,
            output_tokens=tokens_of(text) + sum(tokens_of(call.name + call.arguments) for call in calls),
            chunk_chars=200,
            id=f"msg_{self._number:08}",
            model=str(seen.body.get("model", MODEL)),
        )


def repeated(ids: list[str]) -> list[str]:
    """Return the ids that come more than once."""
    return [one for one, count in Counter(ids).items() if count > 1]
