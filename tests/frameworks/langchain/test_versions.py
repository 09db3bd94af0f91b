"""A LangChain that is missing or was renamed is named in a sentence."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from langchain.agents import middleware

from compactd.integrations.frameworks.langchain.versions import LANGCHAIN, lacks
from compactd.integrations.frameworks.versions import Framework


def test_the_installed_langchain_has_everything() -> None:
    LANGCHAIN.check()


def test_what_was_renamed_is_named() -> None:
    changed = SimpleNamespace(AgentMiddleware=middleware.AgentMiddleware, ModelRequest=None)
    assert "`ModelRequest.messages`" in list(lacks(changed))
    assert "parameter `handler` of `AgentMiddleware.wrap_tool_call`" in list(lacks(SimpleNamespace()))


def test_the_error_says_what_is_installed_what_was_tested_and_what_to_do() -> None:
    old = Framework("langchain", "langchain", "langchain 9", ("langchain.agents",), lambda _: ["`x`", "`y`"])
    with pytest.raises(
        ImportError, match=r"langchain 1\.\S+ has no `x`, `y`\. .*tested with langchain 9: install"
    ):
        old.check()
    missing = Framework("nothing", "langchain", "langchain 9", ("no_such_module",), lambda _: [])
    with pytest.raises(ImportError, match=r"pip install 'compactd\[langchain\]'"):
        missing.check()
