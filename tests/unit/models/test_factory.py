"""Which provider answers a model's requests, at which address, in which wire format, with which key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from compactd.models.providers.factory import KNOWN_PROVIDERS, WireName, provider_for
from compactd.models.providers.http import ConnectionPool
from compactd.models.providers.http_provider import HttpProvider
from compactd.models.providers.keys import Keyring
from compactd.models.providers.network import address_of
from compactd.protocol.errors import NoProvider
from tests.support.loopback import Answer, Loopback
from tests.unit.models.asking_loopback import StillClock, hear, linked, request_of

ALL_KEYS = {name: f"key-of-{name}" for known in KNOWN_PROVIDERS.values() for name in known.keys}


def chosen(
    model: str,
    provider: str | None = None,
    base_url: str | None = None,
    environ: Mapping[str, str] = ALL_KEYS,
    wire: WireName | None = None,
    keys: Path | None = None,
) -> tuple[HttpProvider, str]:
    return provider_for(
        model,
        provider=provider,
        base_url=base_url,
        keyring=Keyring(environ, keys).read(),
        links=ConnectionPool({}),
        clock=StillClock(),
        wire=wire,
    )


@pytest.mark.parametrize(
    ("model", "provider", "base_url", "name", "id", "shape", "url"),
    [
        ("gpt-5", "openai", None, "openai", "gpt-5", "openai_responses", "https://api.openai.com/v1"),
        ("openai/gpt-5", None, None, "openai", "gpt-5", "openai_responses", "https://api.openai.com/v1"),
        ("openai/gpt-5", "openai", None, "openai", "gpt-5", "openai_responses", "https://api.openai.com/v1"),
        ("claude-x", "anthropic", None, "anthropic", "claude-x", "anthropic", "https://api.anthropic.com"),
        (
            "gemini/gemini-3-pro",
            None,
            None,
            "google",
            "gemini-3-pro",
            "gemini",
            "https://generativelanguage.googleapis.com",
        ),
        ("ollama/qwen3:8b", None, None, "ollama", "qwen3:8b", "openai", "http://127.0.0.1:11434"),
        (
            "deepseek-chat",
            "deepseek",
            None,
            "deepseek",
            "deepseek-chat",
            "openai",
            "https://api.deepseek.com",
        ),
        (
            "openrouter/anthropic/claude-x",
            None,
            None,
            "openrouter",
            "anthropic/claude-x",
            "openai",
            "https://openrouter.ai/api/v1",
        ),
        (
            "anthropic/claude-x",
            "openrouter",
            None,
            "openrouter",
            "anthropic/claude-x",
            "openai",
            "https://openrouter.ai/api/v1",
        ),
        ("m", None, "http://localhost:8000/v1", "local", "m", "openai", "http://localhost:8000/v1"),
        ("org/m", None, "http://127.0.0.1:8000", "local", "org/m", "openai", "http://127.0.0.1:8000/v1"),
        ("m", "lm-studio", None, "lmstudio", "m", "openai", "http://127.0.0.1:1234/v1"),
        (
            "m",
            "my-gateway",
            "https://llm.example/api/",
            "my-gateway",
            "m",
            "openai",
            "https://llm.example/api",
        ),
        ("m", "openai", "http://127.0.0.1:8000/v1", "openai", "m", "openai", "http://127.0.0.1:8000/v1"),
        (
            "m",
            None,
            "https://api.deepseek.com",
            "deepseek",
            "m",
            "openai",
            "https://api.deepseek.com",
        ),
        (
            "m",
            "openai",
            "https://api.openai.com",
            "openai",
            "m",
            "openai_responses",
            "https://api.openai.com/v1",
        ),
        (
            "m",
            "azure",
            "https://me.openai.azure.com/",
            "azure",
            "m",
            "openai",
            "https://me.openai.azure.com/openai/v1",
        ),
        ("m", "anthropic", "http://127.0.0.1:80/v1/", "anthropic", "m", "anthropic", "http://127.0.0.1:80"),
        ("m", "google", "http://127.0.0.1:80/v1beta", "google", "m", "gemini", "http://127.0.0.1:80"),
        ("m", "ollama", "http://127.0.0.1:80/v1", "ollama", "m", "openai", "http://127.0.0.1:80"),
        (
            "m",
            "vllm",
            "http://127.0.0.1:8000/v1/chat/completions",
            "vllm",
            "m",
            "openai",
            "http://127.0.0.1:8000/v1",
        ),
    ],
)
def test_a_name_and_an_address_choose_the_provider(
    model: str, provider: str | None, base_url: str | None, name: str, id: str, shape: str, url: str
) -> None:
    found, asked_as = chosen(model, provider, base_url)

    assert (found.name, asked_as, found.shape, found.base_url) == (name, id, shape, url)


@pytest.mark.parametrize("name", sorted(KNOWN_PROVIDERS))
def test_every_known_provider_has_an_https_address_or_is_on_this_machine(name: str) -> None:
    known = KNOWN_PROVIDERS[name]
    if known.base_url is None:
        return
    address = address_of(known.base_url)

    assert address is not None
    assert (address.scheme == "https") == known.needs_key


def test_the_environment_may_name_another_address() -> None:
    urls = {
        "OPENAI_BASE_URL": "https://gateway.example/v1",
        "ANTHROPIC_BASE_URL": "http://10.0.0.1/anthropic",
    }

    openai, _ = chosen("m", "openai", environ={**ALL_KEYS, **urls})
    anthropic, _ = chosen("m", "anthropic", environ={**ALL_KEYS, **urls})

    # At an address that is not OpenAI's own, the common shape `openai` is spoken.
    assert (openai.base_url, openai.shape) == ("https://gateway.example/v1", "openai")
    assert anthropic.base_url == "http://10.0.0.1/anthropic"
    # The user set the key together with the address.
    assert anthropic.has_key


def test_the_clients_address_comes_before_the_environments(tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text('[openai]\nbase_url = "https://file.example/v1"\nhosts = ["client.example"]\n')
    keys.chmod(0o600)
    environ = {**ALL_KEYS, "OPENAI_BASE_URL": "https://environ.example/v1"}

    from_client, _ = chosen("m", "openai", "https://client.example/v1", environ, keys=keys)
    from_environ, _ = chosen("m", "openai", None, environ, keys=keys)
    from_file, _ = chosen("m", "openai", None, ALL_KEYS, keys=keys)

    assert [found.base_url for found in (from_client, from_environ, from_file)] == [
        "https://client.example/v1",
        "https://environ.example/v1",
        "https://file.example/v1",
    ]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:5000", "http://127.0.0.1:5000"),
        (":5000", "http://127.0.0.1:5000"),
        ("box.lan", "http://box.lan:11434"),
        ("http://box.lan", "http://box.lan"),
        ("https://box.lan/ollama/", "https://box.lan/ollama"),
        ("[::]:5000", "http://[::1]:5000"),
        ("::1", "http://[::1]:11434"),
    ],
)
def test_ollamas_host_is_understood_in_every_form(host: str, url: str) -> None:
    found, _ = chosen("m", "ollama", environ={"OLLAMA_HOST": host})

    assert found.base_url == url


def test_a_wire_can_be_asked_for() -> None:
    responses, _ = chosen("m", "openai", "http://127.0.0.1:1/v1", wire="openai_responses")
    chat, _ = chosen("m", "openai", wire="openai")

    assert (responses.shape, chat.shape) == ("openai_responses", "openai")


def test_a_wire_can_be_part_of_the_name() -> None:
    responses, id = chosen("openai-responses/my/model", None, "http://127.0.0.1:1")
    chat, _ = chosen("gpt-5", "openai-chat")

    assert (responses.name, id, responses.shape) == ("openai", "my/model", "openai_responses")
    assert (chat.name, chat.base_url, chat.shape) == ("openai", "https://api.openai.com/v1", "openai")


# --- keys -------------------------------------------------------------------------------------------------


async def key_sent(
    server: Loopback, provider: str | None, base_url: str, environ: Mapping[str, str]
) -> str | None:
    """The key that reaches `base_url`, whose host is the server's by way of a proxy."""
    async with linked(environ={"HTTP_PROXY": server.base_url}) as links:
        found, _ = provider_for(
            "m",
            provider=provider,
            base_url=base_url,
            keyring=Keyring(environ, None),
            links=links,
            clock=StillClock(),
        )
        await hear(found, request_of("openai"))
    return server.requests[-1].headers.get("authorization")


async def test_a_key_is_not_sent_over_plain_http_to_an_address_the_client_gave() -> None:
    with Loopback(then=Answer(text="x")) as server:
        found, _ = chosen("m", "vllm", "http://10.1.2.3:8000/v1", {"VLLM_API_KEY": "key-of-vllm"})

        assert not found.has_key
        sent = await key_sent(server, "vllm", "http://vllm.example/v1", {"VLLM_API_KEY": "key-of-vllm"})
        assert sent is None
    with pytest.raises(NoProvider, match="plain http"):
        chosen("m", "openai", "http://10.1.2.3:8000/v1")


def test_a_key_goes_only_to_the_provider_it_is_for() -> None:
    found, _ = chosen("m", "openai", "https://api.deepseek.com", {"DEEPSEEK_API_KEY": "d"})

    assert found.has_key
    with pytest.raises(NoProvider, match="DEEPSEEK_API_KEY"):
        chosen("m", "openai", "https://api.deepseek.com", {"OPENAI_API_KEY": "o"})


@pytest.mark.parametrize("name", sorted(name for name, known in KNOWN_PROVIDERS.items() if known.base_url))
def test_without_a_key_nobody_is_asked_but_this_machine(name: str) -> None:
    if not KNOWN_PROVIDERS[name].needs_key:
        assert not chosen("m", name, environ={})[0].has_key
        return
    with pytest.raises(NoProvider) as seen:
        chosen("m", name, environ={})

    assert seen.value.code == 1007
    assert KNOWN_PROVIDERS[name].keys[0] in seen.value.message


def test_an_address_on_this_machine_needs_no_key() -> None:
    for base_url in ("http://localhost:1/v1", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"):
        assert not chosen("m", "openai", base_url, {})[0].has_key


@pytest.mark.parametrize(
    ("model", "provider", "base_url", "words"),
    [
        ("gpt-5", None, None, "provider/id"),
        ("org/model", None, None, "provider/id"),
        ("m", "unheard-of", None, "base_url"),
        ("m", "azure", None, "base_url"),
        ("m", "bedrock", None, "gateway"),
        ("m", "openai", "ftp://x", "http"),
        ("m", "openai", "not a url", "http"),
    ],
)
def test_where_nobody_can_be_asked_the_error_says_what_to_do(
    model: str, provider: str | None, base_url: str | None, words: str
) -> None:
    with pytest.raises(NoProvider) as seen:
        chosen(model, provider, base_url)

    assert words in seen.value.message
