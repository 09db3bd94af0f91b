"""Recounting messages in batches gives each message the same tokens as counting it alone."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from compactd.core.history.entries import Item
from compactd.core.history.lazy_message import LazyMessage
from compactd.core.tokens.counting import (
    BatchCounter,
    Counter,
    Habits,
    message_tokens,
    messages_tokens,
    script_aware,
)
from compactd.formats.messages.neutral import decode_message
from compactd.models.tokenizers.counters import Bpe
from compactd.protocol.messages import Message, Text, Thinking, ToolCall, ToolResult
from compactd.session.recount import TOGETHER, RecountCache

O200K = Bpe("o200k_base", habits=Habits(call_tokens=7, keeps_thinking=False))


class Letters(Struct):
    """A counter with one token per code point, which records how often it was called."""

    habits: Habits = Habits(call_tokens=3)
    name: str = "letters"
    exact: bool = True
    calls: int = 0

    def count(self, text: str) -> int:
        return len(text)

    def count_each(self, texts: list[str]) -> list[int]:
        self.calls += 1
        return [len(text) for text in texts]


BLOCKS = st.one_of(
    st.builds(Text, text=st.text(max_size=12)),
    st.builds(Thinking, text=st.text(max_size=12)),
    st.builds(
        ToolCall,
        call_id=st.just("c"),
        name=st.just("read"),
        arguments=st.sampled_from((Raw(b'{"a": 1}'), Raw(b'"{\\"b\\": 2}"'))),
    ),
    st.builds(ToolResult, call_id=st.just("c"), content=st.text(max_size=12)),
    st.builds(
        ToolResult,
        call_id=st.just("c"),
        content=st.lists(st.builds(Text, text=st.text(max_size=9))).map(tuple),
    ),
)
MESSAGES = st.lists(
    st.builds(Message, role=st.just("assistant"), content=st.lists(BLOCKS, max_size=4).map(tuple)), max_size=6
)


@settings(deadline=None)
@given(MESSAGES, st.sampled_from((O200K, Bpe("cl100k_base"), script_aware("claude"))))
def test_messages_that_are_counted_together_have_the_tokens_of_each(
    messages: list[Message], counter: Counter
) -> None:
    assert messages_tokens(messages, counter) == [message_tokens(message, counter) for message in messages]


def test_a_tokenizer_counts_many_at_once_and_an_estimate_does_not() -> None:
    assert isinstance(O200K, BatchCounter)
    assert not isinstance(script_aware("claude"), BatchCounter)


def items(count: int) -> list[Item]:
    made = []
    for n in range(count):
        raw = Raw(msgspec.json.encode({"role": "user", "content": "x" * (n % 50)}))
        made.append(Item(entry_id=f"e{n}", body=LazyMessage(raw, decode_message), tokens=0))
    return made


def test_who_asks_in_order_gets_the_counts_of_many_from_few_calls() -> None:
    counter, view = Letters(), items(3 * TOGETHER)
    recounting = RecountCache(counter, view)

    seen = [recounting.next(item.message) for item in view]

    assert seen == [n % 50 for n in range(3 * TOGETHER)]
    assert counter.calls == 3


def test_what_was_prepared_is_not_counted_again() -> None:
    counter, view = Letters(), items(TOGETHER + 2)
    recounting = RecountCache(counter, view)
    recounting.prepare()
    calls = counter.calls

    assert [recounting.of(item.message) for item in view] == [n % 50 for n in range(TOGETHER + 2)]
    assert [recounting.next(item.message) for item in view] == [n % 50 for n in range(TOGETHER + 2)]
    assert counter.calls == calls == 2


def test_messages_before_the_one_that_is_asked_for_stay_bytes() -> None:
    view = items(10)
    recounting = RecountCache(Letters(), view)

    assert recounting.next(view[7].message) == 7
    assert [item.is_decoded for item in view] == [False] * 7 + [True] * 3


def test_a_message_that_nobody_expected_is_counted_by_itself_as_is_every_one_after_it_was_forgotten() -> None:
    view = items(4)
    recounting = RecountCache(Letters(), view)
    other = Message(role="user", content=(Text(text="other"),))

    assert (recounting.of(other), recounting.next(other), recounting.next(view[3].message)) == (5, 5, 3)

    recounting.prepare()
    recounting.forget()
    assert [recounting.next(item.message) for item in view] == [0, 1, 2, 3]
