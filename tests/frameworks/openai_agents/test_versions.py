from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import agents
import agents.run_config

from compactd.integrations.frameworks.openai_agents.versions import SDK, lacks


def test_the_installed_sdk_has_all_that_the_adapter_uses() -> None:
    SDK.check()
    assert list(lacks(agents)) == []


def test_a_renamed_field_is_named() -> None:
    @dataclass
    class ModelInputData:
        items: list[object]
        instructions: str | None

    class Model:
        def get_response(self, system_instructions: str, prompt: str) -> None: ...

    config = SimpleNamespace(**{**vars(agents.run_config), "ModelInputData": ModelInputData})

    missing = list(lacks(SimpleNamespace(**{**vars(agents), "run_config": config, "Model": Model})))

    assert missing[0] == "`ModelInputData.input`"
    assert "parameter `input` of `Model.get_response`" in missing
    assert "parameter `input` of `Model.stream_response`" in missing
