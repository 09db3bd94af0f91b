"""LiteLLM's proxy, started with a configuration, and the OpenAI client in front of it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from litellm.types.utils import ModelResponseStream
from openai import AsyncOpenAI

from tests.frameworks.environment import ROOT, variables
from tests.frameworks.litellm.agents import WINDOW, Agent
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.talk import talk
from tests.frameworks.test_environment import leave_out

KEY = "sk-test-" + uuid4().hex
NAMES = ("header", "body", "stream", "unknown", "alone")
PAGE = (ROOT / "docs" / "litellm.md").read_text()
(HOOKS,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "\ncompactd =" in block]
RUN = """
import sys
try:
    from litellm_cli.main import proxy_server
except ImportError:
    from litellm import run_server as proxy_server
sys.exit(proxy_server())
"""


@dataclass(frozen=True)
class Proxy:
    url: str
    log: Path
    providers: dict[str, Provider]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy with one model for each test, each behind a provider of its own."""
    if find_spec("fastapi_sso") is None:
        leave_out("litellm[proxy] is not installed")
    folder = tmp_path_factory.mktemp("proxy")
    with ExitStack() as stack:
        talks = {name: talk(2) for name in NAMES} | {"header": talk()}
        providers = {name: stack.enter_context(Provider(talks[name])) for name in NAMES}
        (folder / "config.yaml").write_text(json.dumps(_config(providers)))
        (folder / "compactd_hooks.py").write_text(HOOKS)
        port, log = free_port(), folder / "log"
        given = {**variables(), "LITELLM_MASTER_KEY": KEY, "COMPACTD_HOME": str(folder / "data")}
        arguments = ("--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port))
        with log.open("wb") as output:
            process = subprocess.Popen(
                (sys.executable, "-c", RUN, *arguments),
                cwd=folder,
                env=given,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        _wait(f"http://127.0.0.1:{port}/health/liveliness", process, log)
        yield Proxy(f"http://127.0.0.1:{port}", log, providers)


def _config(providers: dict[str, Provider]) -> dict[str, Any]:
    models = []
    for name, provider in providers.items():
        model = MODEL if name != "unknown" else f"unknown-{uuid4().hex}"
        parameters = {"model": f"openai/{model}", "api_base": provider.openai_url, "api_key": "dummy-key"}
        info = {} if name == "unknown" else {"model_info": {"max_input_tokens": WINDOW}}
        models.append({"model_name": name, "litellm_params": parameters, **info})
    return {
        "model_list": models,
        "litellm_settings": {"callbacks": "compactd_hooks.compactd"},
        "router_settings": {"retry_policy": {"BadRequestErrorRetries": 3}},
    }


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail(f"the proxy did not start: {log.read_text(errors='replace')[-2_000:]}")


def client_of(proxy: Proxy) -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url=proxy.url, api_key=KEY, max_retries=0, http_client=httpx.AsyncClient(trust_env=False)
    )


def agent_of(proxy: Proxy, name: str, **request: Any) -> Agent:
    create = client_of(proxy).chat.completions.create

    async def ask(**given: Any) -> Any:
        given.pop("metadata")
        answered = await create(model=name, **given)
        return chunks(answered) if given.get("stream") else answered

    return Agent(ask, **request)


async def chunks(answered: Any) -> AsyncIterator[ModelResponseStream]:
    async for chunk in answered:
        yield ModelResponseStream(**chunk.model_dump())


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("header", {"extra_headers": {"x-litellm-session-id": "by-header"}}),
        ("body", {"extra_body": {"metadata": {"session_id": "by-body"}}}),
        ("stream", {"extra_headers": {"x-litellm-session-id": "by-stream"}, "stream": True}),
    ],
)
async def test_a_conversation_fits_through_the_proxy(proxy: Proxy, name: str, more: dict[str, Any]) -> None:
    provider = proxy.providers[name]
    agent = agent_of(proxy, name, **more)
    for request in provider.asks():
        await agent.run(request)
    # The proxy itself asks for the list of models, once.
    assert [fault for fault in broken(provider) if "/v1/models" not in fault] == []
    assert provider.totals.rejections == 0
    assert provider.totals.tasks == len(provider.talk.requests)
    assert len(provider.requests[-1].body["messages"]) < len(agent.messages) - 1


async def test_an_overflow_is_sent_again_by_the_proxys_retry_policy(proxy: Proxy) -> None:
    provider = proxy.providers["unknown"]
    agent = agent_of(proxy, "unknown", extra_headers={"x-litellm-session-id": "overflow"})
    for request in provider.asks():
        await agent.run(request)
    assert (provider.totals.tasks, provider.totals.rejections) == (2, 1)


async def test_a_request_without_an_id_is_left_alone_and_said_once(proxy: Proxy) -> None:
    provider = proxy.providers["alone"]
    agent = agent_of(proxy, "alone")
    for note in range(2):
        agent.messages.append({"role": "user", "content": f"Note {note}: " + "word " * 3_300})
        await agent.answer()
        assert provider.requests[-1].body["messages"] == agent.messages
    assert proxy.log.read_text(errors="replace").count("has no session id") == 1
