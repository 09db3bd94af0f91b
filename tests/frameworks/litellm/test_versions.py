"""A version of LiteLLM that lacks something is named at the import."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from litellm.integrations import custom_logger

from compactd.integrations.frameworks.litellm.versions import LITELLM, lacks
from compactd.integrations.frameworks.versions import Framework


def test_the_installed_version_has_all() -> None:
    assert list(lacks(custom_logger)) == []
    LITELLM.check()


def test_what_is_missing_is_named() -> None:
    class Renamed(custom_logger.CustomLogger):
        async def async_pre_call_deployment_hook(self, request: object, call_type: object) -> None:  # type: ignore[override]
            """As a later version might have it."""

    module = SimpleNamespace(CustomLogger=Renamed, CallTypes=custom_logger.CallTypes)
    (missing,) = lacks(module)
    assert missing == "parameter `kwargs` of `CustomLogger.async_pre_call_deployment_hook`"
    assert "`CallTypes.acompletion`" in list(lacks(SimpleNamespace(CustomLogger=Renamed)))


def test_without_litellm_the_extra_is_named() -> None:
    missing = Framework("litellm", "litellm", "litellm 1.110", ("litellm.no_such_module",), lacks)
    with pytest.raises(ImportError, match=r"pip install 'compactd\[litellm\]'"):
        missing.check()
