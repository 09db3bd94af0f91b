"""Random histories of Pydantic AI, with every kind of part, for property tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from pydantic_ai import messages as pai
from pydantic_ai.usage import RequestUsage

NOW = datetime(2026, 11, 28, tzinfo=UTC)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
ARGS = (
    st.none()
    | st.just("")
    | st.just("{broken")
    | st.just('{"a": 1}')
    | st.dictionaries(TEXTS, JSON, max_size=3)
)
IDS = st.sampled_from(["a", "b", "c", "d", "e"])
PICTURE = pai.BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png", vendor_metadata={"detail": "low"})
ITEMS = st.one_of(
    TEXTS,
    st.builds(pai.TextContent, TEXTS, metadata=JSON),
    st.just(PICTURE),
    st.just(pai.BinaryContent(b"%PDF-1.7", media_type="application/pdf")),
    st.just(pai.BinaryContent(b"a,b\n1,2", media_type="text/csv")),
    st.just(pai.BinaryContent(b"ID3", media_type="audio/mpeg")),
    st.just(pai.ImageUrl("https://example.com/a.png")),
    st.just(pai.DocumentUrl("https://example.com/a.pdf")),
    st.just(pai.VideoUrl("https://example.com/a.mp4")),
    st.just(pai.CachePoint()),
)

REQUEST_PARTS = st.one_of(
    st.builds(pai.UserPromptPart, TEXTS | st.lists(ITEMS, max_size=3), timestamp=st.just(NOW)),
    st.builds(
        pai.SystemPromptPart,
        TEXTS,
        timestamp=st.just(NOW),
        scope=st.sampled_from(["conversation", "request"]),
    ),
    st.builds(
        pai.ToolReturnPart,
        tool_name=st.just("look"),
        content=TEXTS | JSON | st.lists(ITEMS, max_size=2),
        tool_call_id=IDS,
        metadata=JSON,
        timestamp=st.just(NOW),
        outcome=st.sampled_from(["success", "failed", "denied", "interrupted", "retried"]),
    ),
    st.builds(
        pai.RetryFeedbackPart,
        TEXTS,
        retry=st.just(pai.RetryInfo(cause="model_retry")),
        timestamp=st.just(NOW),
    ),
    st.builds(pai.ToolAvailabilityDeltaPart, tools_added=st.lists(TEXTS, max_size=2)),
    st.builds(pai.CompactionPart, TEXTS, metadata=st.none() | st.just({"by": "another"})),
)
RESPONSE_PARTS = st.one_of(
    st.builds(pai.TextPart, TEXTS, id=st.none() | st.just("msg_1"), provider_name=st.just("openai")),
    st.builds(
        pai.ThinkingPart,
        TEXTS,
        id=st.sampled_from([None, "rs_1", "redacted_thinking"]),
        signature=st.none() | TEXTS,
        provider_name=st.just("anthropic"),
        provider_details=st.none() | st.just({"raw_content": ["x"]}),
    ),
    st.builds(pai.ToolCallPart, tool_name=st.just("look"), args=ARGS, tool_call_id=IDS),
    st.builds(
        pai.NativeToolCallPart,
        tool_name=st.just("web_search"),
        args=ARGS,
        tool_call_id=IDS,
        provider_name=st.just("openai"),
    ),
    st.builds(
        pai.NativeToolReturnPart,
        tool_name=st.just("web_search"),
        content=JSON,
        tool_call_id=IDS,
        timestamp=st.just(NOW),
        provider_name=st.just("openai"),
    ),
    st.builds(pai.FilePart, st.just(PICTURE)),
)
RUNS = st.sampled_from([None, "run-1", "run-2"])
MESSAGES = st.one_of(
    st.builds(
        pai.ModelRequest,
        parts=st.lists(REQUEST_PARTS, max_size=4),
        instructions=st.none() | TEXTS,
        run_id=RUNS,
        metadata=st.none() | st.just({"mine": 1}),
    ),
    st.builds(
        pai.ModelResponse,
        parts=st.lists(RESPONSE_PARTS, max_size=4),
        usage=st.builds(RequestUsage, input_tokens=st.integers(0, 99), cache_read_tokens=st.integers(0, 9)),
        provider_name=st.sampled_from([None, "openai"]),
        timestamp=st.just(NOW),
        run_id=RUNS,
    ),
)
HISTORIES = st.lists(MESSAGES, max_size=8)
