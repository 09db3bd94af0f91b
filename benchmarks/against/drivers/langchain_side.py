"""langchain: its approximate token count, its summarisation middleware's plan, its trimming, its messages."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from langchain.agents.middleware.summarization import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
    trim_messages,
)
from langchain_core.messages.utils import count_tokens_approximately
from serving import HELD, Run, Told, blocks_of, messages_in, serve, text_of


def _messages(file: str) -> list[AnyMessage]:
    made: list[AnyMessage] = []
    for number, message in enumerate(messages_in(file)):
        calls = []
        for block in blocks_of(message):
            if block["type"] == "tool_call":
                calls.append({"id": block["call_id"], "name": block["name"], "args": block["arguments"]})
            elif block["type"] == "tool_result":
                made.append(ToolMessage(block["content"], tool_call_id=block["call_id"], id=f"m{number}"))
        if message["role"] == "assistant":
            made.append(AIMessage(text_of(message), tool_calls=calls, id=f"m{number}"))
        elif message["role"] == "user":
            made.append(HumanMessage(text_of(message), id=f"m{number}"))
    return made


def estimate(file: str, keep: int) -> Run:
    """Time langchain's approximate counter, which the middleware uses too."""
    messages = _messages(file)

    def run() -> Told:
        return {"tokens": count_tokens_approximately(messages)}

    return run


def plan(file: str, keep: int) -> Run:
    """Time what the middleware does before it asks the model: count, decide, find the cut, split the
    messages."""
    messages = _messages(file)
    model = FakeListChatModel(responses=["summary"])
    middleware = SummarizationMiddleware(model, trigger=("tokens", 1_000), keep=("tokens", keep))

    def run() -> Told:
        tokens = middleware.token_counter(messages)
        if not middleware._should_summarize(messages, tokens):
            raise ValueError("it would not summarise")
        cutoff = middleware._determine_cutoff_index(messages)
        removed, _ = middleware._partition_messages(messages, cutoff)
        return {"messages": len(removed)}

    return run


def trim(file: str, keep: int) -> Run:
    """Time trimming without a model: keep the newest messages that fit, by the approximate counter."""
    messages = _messages(file)

    def run() -> Told:
        kept = trim_messages(
            messages, max_tokens=keep, token_counter="approximate", strategy="last", start_on=("human", "ai")
        )
        return {"tokens": count_tokens_approximately(kept)}

    return run


def load(file: str, keep: int) -> Run:
    """Time loading messages from the JSON that langchain writes."""

    def run() -> Told:
        messages = messages_from_dict(json.loads(Path(file).read_bytes()))
        return {"messages": len(messages), HELD: messages}

    return run


def store(file: str, to: str) -> None:
    """Writes that JSON."""
    Path(to).write_text(json.dumps(messages_to_dict(_messages(file))), "utf-8")


if __name__ == "__main__":
    rows = {"estimate": estimate, "plan": plan, "trim": trim, "load": load}
    serve(rows, f"{version('langchain')}, core {version('langchain-core')}", store)
