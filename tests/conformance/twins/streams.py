"""Twins (broken daemons) that change the messages between a client and the real daemon: one fault each."""

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
    """A compaction that would make the request larger is reported as done."""

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/compact"):
            result = message["result"]
            if "would not make it smaller" in result["reason"]:
                grown = {"tokens_after": result["tokens_before"] + 29, "tokens_saved": -29}
                return [{**message, "result": {**result, "compacted": True, "compaction_id": "c1", **grown}}]
        return None


class CompactsForNothing(Twin):
    """A second compaction, which saves nothing, is reported as done."""

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
        altered = self.altered(asked, message)
        return [message] if altered is None else altered

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


class PlansForReal(Twin):
    """`plan_only` without `dry_run` is no plan."""

    def to_daemon(self, message):
        given = message.get("params") or {}
        if message["method"] != "session/compact" or not given.get("plan_only") or given.get("dry_run"):
            return None
        del given["plan_only"]
        return [message]


class TakesEveryShape(Twin):
    """A message in another provider's shape is taken."""

    def to_client(self, asked, message):
        if asked.get("method") == "session/append" and "format" in (
            message.get("error", {}).get("data") or {}
        ):
            del message["error"]
            return [{**message, "result": {"entry_ids": ["e1"], "duplicates": [], "pending_calls": []}}]
        return None


class CountsALateReport(Twin):
    """The report of a turn that had another system prompt is the size."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[str] = set()

    def to_daemon(self, message):
        if message["method"] == "session/configure" and "system_prompt" in message["params"]:
            self.changed.add(message["params"]["session_id"])

    def to_client(self, asked, message):
        if is_answer(asked, message, "turn/end") and asked["params"]["session_id"] in self.changed:
            usage = asked["params"]["usage"]
            size = usage["input_tokens"] + usage["output_tokens"]
            message["result"]["token_usage"]["current_context_tokens"] = size
            return [message]
        return None


class OpensToLook(Twin):
    """A palette's command for looking opens the session to write."""

    def to_daemon(self, message):
        if message["method"] != "workspace/executeCommand":
            return None
        opened = {"session_id": "looked-at"}
        return [{"jsonrpc": "2.0", "id": "opened", "method": "session/start", "params": opened}, message]


class DropsAllOptions(Twin):
    """One bad value among the client's settings, and none of them counts."""

    def to_daemon(self, message):
        given = message.get("params") or {}
        if "threshold_ratio" not in given.get("initializationOptions", {}).get("compaction", {}):
            return None
        given["initializationOptions"]["compaction"] = {"threshold_ratio": 9}
        return [message]


class TellsAReaderNothing(Twin):
    """A client that has a session open read-only gets no `message_appended`."""

    def __init__(self) -> None:
        super().__init__()
        self.read_only: set[str] = set()

    def to_client(self, asked, message):
        if is_answer(asked, message, "session/start") and message["result"]["read_only"]:
            self.read_only.add(message["result"]["session_id"])
        event = message.get("params", {})
        return (
            [] if event.get("type") == "message_appended" and event["session_id"] in self.read_only else None
        )


class ShowsNoSummary(Twin):
    """The phase in which a model writes is not shown."""

    def to_client(self, asked, message):
        is_shown = message.get("method") == "$/progress"
        return [] if is_shown and message["params"]["value"].get("message") == "summarize" else None


class TakesAnotherStrategy(Twin):
    """If no model is set, `summarize` is replaced by `extract`."""

    def to_daemon(self, message):
        given = message.get("params") or {}
        if message["method"] != "session/compact" or given.get("strategy") != "summarize" or "model" in given:
            return None
        given["strategy"] = "extract"
        return [message]


class EndsNoAbortedTurn(Renumbers):
    """A turn that was aborted has no `turn_end`."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted: set[str] = set()

    def to_daemon(self, message):
        if message["method"] == "agent/abort":
            self.aborted.add(message["params"]["session_id"])

    def altered(self, asked, message):
        event = message.get("params", {})
        if event.get("type") == "turn_end" and event["session_id"] in self.aborted:
            self.shift[event["session_id"]] -= 1
            return []
        return None


class GoesOnAlone(Twin):
    """That its client is gone means nothing."""

    def vanished(self):
        pass

    def run(self):
        try:
            return super().run()
        except OSError:
            return self._daemon.wait()


class WarnsOfNoModel(Twin):
    """A model that nobody knows is taken without a word."""

    def to_client(self, asked, message):
        if not is_answer(asked, message, "session/start"):
            return None
        warnings = message["result"]["warnings"]
        message["result"]["warnings"] = [one for one in warnings if "registry of models" not in one]
        return [message]


class UnsetsNothing(Twin):
    """`unset` is ignored."""

    def to_daemon(self, message):
        if message["method"] == "session/configure" and message["params"].pop("unset", None):
            return [message]
        return None


class ForcesNoUndo(Twin):
    """`force` is ignored."""

    def to_daemon(self, message):
        if message["method"] == "session/undo" and message["params"].pop("force", None):
            return [message]
        return None


class TellsNoPin(Renumbers):
    """There is no event for a pin."""

    def altered(self, asked, message):
        event = message.get("params", {})
        if event.get("type") == "session_changed" and event["what"] == "pin":
            self.shift[event["session_id"]] -= 1
            return []
        return None


class DropsNoPrompt(Twin):
    """A prompt that is dropped stays in the queue."""

    def to_daemon(self, message):
        if message["method"] == "prompt/drop":
            message["params"]["prompt_id"] = "none"
            return [message]
        return None


class RefusesAnEmptyList(Twin):
    """Params that are a list are bad, whatever the method needs."""

    def to_client(self, asked, message):
        if asked.get("params") != [] or "result" not in message:
            return None
        del message["result"]
        return [{**message, "error": {"code": -32602, "message": "Expected `object`", "data": {"path": "$"}}}]
