"""Twins that alter what passes between the client and the real daemon: one fault each."""

from __future__ import annotations

import json
from collections import Counter

from between import Json, Twin


def is_answer(asked: Json, message: Json, method: str, **params: object) -> bool:
    given = asked.get("params") or {}
    return (
        asked.get("method") == method
        and "result" in message
        and all(given.get(name) == value for name, value in params.items())
    )


def without_first(messages: list, is_it) -> list:
    at = next((at for at, one in enumerate(messages) if is_it(one)), None)
    return messages if at is None else [*messages[:at], *messages[at + 1 :]]


class PartsACall(Twin):
    """The first tool result is missing from a request for OpenAI."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/context", format="openai"):
            found = message["result"]
            found["messages"] = without_first(found["messages"], lambda one: one["role"] == "tool")
            return [message]
        return None


class LeavesAnOrphan(Twin):
    """The first calls are missing from a request for Anthropic; their results are not."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/context", format="anthropic"):
            found = message["result"]
            found["messages"] = without_first(found["messages"], lambda one: '"tool_use"' in json.dumps(one))
            return [message]
        return None


class Rewords(Twin):
    """The white space around what a person wrote is gone."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/context"):
            said = [one for one in message["result"]["messages"] if isinstance(one.get("content"), str)]
            padded = [
                one for one in said if one["role"] == "user" and one["content"] != one["content"].strip()
            ]
            for one in padded:
                one["content"] = one["content"].strip()
            return [message] if padded else None
        return None


class ReportsGrowth(Twin):
    """A compaction that would have made the request larger is told as done."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/compact"):
            result = message["result"]
            if "would not make it smaller" in result["reason"]:
                grown = {"tokens_after": result["tokens_before"] + 29, "tokens_saved": -29}
                return [{**message, "result": {**result, "compacted": True, "compaction_id": "c1", **grown}}]
        return None


class CompactsForNothing(Twin):
    """A second compaction is told as done and gains nothing."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/compact") and "since the last" in message["result"]["reason"]:
            return [{**message, "result": {**message["result"], "compacted": True, "compaction_id": "c2"}}]
        return None


class Renumbers(Twin):
    """Alters events so that their numbers have no gap."""

    def __init__(self) -> None:
        super().__init__()
        self.shift: Counter[str] = Counter()
        self.last: dict[str, int] = {}

    def to_client(self, asked, message):
        if message.get("method") != "agent/event":
            return self.altered(asked, message)
        event = message["params"]
        event["seq"] += self.shift[event["session_id"]]
        self.last[event["session_id"]] = event["seq"]
        return self.altered(asked, message) or [message]

    def altered(self, asked, message):
        return None


class ForgetsAnEnd(Renumbers):
    """The third compaction of a session has no `compaction_end`."""

    def altered(self, asked, message):
        event = message.get("params", {})
        if event.get("type") == "compaction_end" and event["compaction_id"] == "c3":
            self.shift[event["session_id"]] -= 1
            return [{"jsonrpc": "2.0", "method": "window/logMessage", "params": {"type": 4, "message": "so"}}]
        return None


class EndsWhatNeverBegan(Renumbers):
    """A compaction that finds nothing to do tells an end without a start."""

    def altered(self, asked, message):
        if is_answer(asked, message, "session/compact") and "since the last" in message["result"]["reason"]:
            session = asked["params"]["session_id"]
            self.shift[session] += 1
            self.last[session] += 1
            told = {"session_id": session, "seq": self.last[session], "type": "compaction_end"}
            told |= {"compaction_id": "c99", "status": "skipped"}
            return [{"jsonrpc": "2.0", "method": "agent/event", "params": told}, message]
        return None


class SkipsANumber(Twin):
    """There is no event with the `seq` 4."""

    def to_client(self, asked, message):
        if message.get("method") == "agent/event" and message["params"]["seq"] >= 4:
            message["params"]["seq"] += 1
            return [message]
        return None


class StateWaits(Twin):
    """`agent/state` is looked at when the compaction before it is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.compacting: set[object] = set()
        self.waiting: list[Json] = []

    def to_daemon(self, message):
        if message["method"] == "session/compact":
            self.compacting.add(message["id"])
        if message["method"] == "agent/state" and self.compacting:
            self.waiting.append(message)
            return []
        return None

    def to_client(self, asked, message):
        if "method" not in message and message["id"] in self.compacting:
            self.compacting.discard(message["id"])
            self.at_end()
        return

    def at_end(self):
        while self.waiting:
            self.forward(self.waiting.pop(0))


class ForgetsWhatWasCompacted(Twin):
    """Search finds only what is in the context."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/search"):
            hits = message["result"]["hits"]
            message["result"]["hits"] = [hit for hit in hits if hit["in_context"]]
            return [message]
        return None


class ListsAFileTwice(Twin):
    """Files that were modified are listed as read, too."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/compact"):
            message["result"]["read_files"] += message["result"]["modified_files"]
            return [message]
        return None


class CutsACharacter(Twin):
    """Titles are cut at 30 bytes."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/history"):
            long = [
                one for one in message["result"]["entries"] if len((one.get("title") or "").encode()) > 30
            ]
            for one in long:
                one["title"] = one["title"].encode()[:30].decode("utf-8", "replace")
            return [message] if long else None
        return None


class ChangesTheCase(Twin):
    """Arguments come back in snake case."""

    def to_client(self, asked, message):
        text = json.dumps(message)
        return [json.loads(text.replace("filePath", "file_path"))] if "filePath" in text else None


class AnswersTwice(Twin):
    """An undo is answered twice."""

    def to_client(self, asked, message):
        return [message, message] if asked.get("method") == "session/undo" else None


class AnswersNone(Twin):
    """A request with an unknown method is not answered."""

    def to_client(self, asked, message):
        return [] if message.get("error", {}).get("code") == -32601 else None
