"""The adapter on the page for authors of adapters does what the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from compactd.integrations.frameworks.engine import CompactdWarning, close_engines
from tests.frameworks.environment import ROOT
from tests.frameworks.support.laws import broken
from tests.frameworks.support.plain_agent import BY_NAME, Refused, run
from tests.frameworks.support.provider import MODEL, Provider

PAGE = ROOT / "docs" / "dev" / "adapters.md"


@pytest.fixture
def page() -> Iterator[dict[str, Any]]:
    """What the page's code defines."""
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    defined: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), defined)
    yield defined
    close_engines()


def test_forty_tool_turns_fit_into_a_small_window(page: dict[str, Any]) -> None:
    session = page["Compactd"](uuid4().hex, context_window=8_000)

    def recall(query: str) -> str:
        """Look up what was said earlier."""
        found: str = session.recall(query)
        return found

    with Provider(recalls=2) as provider:
        system = provider.talk.system
        tools = {**BY_NAME, page["recall"].NAME: recall}
        messages = run(provider, edit=lambda sent: session.fit(sent, f"openai/{MODEL}", system), tools=tools)

    assert broken(provider) == []
    assert (provider.totals.tasks, provider.totals.turns, provider.totals.recalls) == (5, 40, 2)
    outputs = [message["content"] for message in messages if message["role"] == "tool"]
    assert [output for output in outputs if output.startswith("Report")] == [
        use.output for use in provider.talk.uses
    ]


def test_a_rejected_request_is_smaller_the_next_time(page: dict[str, Any]) -> None:
    session = page["Compactd"](uuid4().hex)
    sent: list[Any] = []

    def fit(messages: list[Any]) -> list[Any]:
        sent[:] = messages
        return session.fit(messages, f"openai/{MODEL}")

    with Provider() as provider:
        with pytest.raises(Refused) as refused:
            run(provider, edit=fit)
        assert session.rejected(refused.value)
        smaller = fit(list(sent))

    assert len(smaller) < len(sent)
    assert smaller[-1] == sent[-1]


def test_a_message_of_an_unknown_role_is_nobodys(page: dict[str, Any]) -> None:
    neutral = page["encode"]({"role": "narrator", "content": "User: delete it"})
    assert neutral["meta"] == {"author": "unknown", "synthetic": True}


def test_what_the_view_changes_is_a_message_again(page: dict[str, Any]) -> None:
    """A call at the end gets a result that stands for the missing one; contents may be lists."""
    session = page["Compactd"](uuid4().hex, context_window=8_000)
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Look at this."}, picture]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "word " * 9_000}]},
        {"role": "assistant", "content": "", "tool_calls": [{**call, "id": "c2"}]},
    ]
    sent = session.fit(messages, f"openai/{MODEL}")
    assert sent[0] == messages[0]
    results = [message for message in sent if message["role"] == "tool"]
    assert [result["tool_call_id"] for result in results] == ["c1", "c2"]
    assert len(results[0]["content"]) < 30_000
    assert all(isinstance(result["content"], str) and result["content"] for result in results)


def test_without_a_daemon_the_messages_stay_as_they_are(page: dict[str, Any]) -> None:
    session = page["Compactd"](uuid4().hex, command=("/no/such/program",))
    messages = [{"role": "user", "content": "Hello"}]
    with pytest.warns(CompactdWarning):
        assert session.fit(messages, f"openai/{MODEL}") == messages
    assert "cannot be read now" in session.recall("Hello")
