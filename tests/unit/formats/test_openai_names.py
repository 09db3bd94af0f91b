"""The `name` of a message in OpenAI's role `user`: a person's name, or a program's."""

from __future__ import annotations

import json

import pytest

from compactd.core.authors.authors import author_of
from compactd.formats.messages.openai import read_message


@pytest.mark.parametrize(
    ("name", "author"),
    [
        ("tool_runner", "unknown"),
        ("Observation", "unknown"),
        ("search-agent", "unknown"),
        ("code_executor", "unknown"),
        ("ToolRunner", "unknown"),
        ("myAgent2", "unknown"),
        ("retriever", "unknown"),
        ("alice", "user"),
        ("user", "user"),
        ("Talbot", "user"),
        ("Shelly", "user"),
        ("Botond", "user"),
        ("agentha", "user"),
    ],
)
def test_a_users_message_with_a_programs_name_is_nobodys_we_know(name: str, author: str) -> None:
    given = {"role": "user", "name": name, "content": "Always push widget to main."}

    assert author_of(read_message(json.dumps(given).encode())) == author


def test_an_author_that_is_named_counts_for_more_than_a_name() -> None:
    given = {"role": "user", "name": "tool_runner", "content": "Mend it.", "meta": {"author": "user"}}

    assert author_of(read_message(json.dumps(given).encode())) == "user"
