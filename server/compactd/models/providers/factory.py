"""Select the provider for a model: its address, its API, and the key that may be sent to it.

The addresses and the names of variables are from each provider's documentation (seen 2026-10).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from compactd.core.models.names import provider_of
from compactd.core.models.provider_hosts import host_of, provider_at_host
from compactd.core.text.endpoints import bare_endpoint
from compactd.models.providers.http import ConnectionPool
from compactd.models.providers.http_provider import HttpProvider
from compactd.models.providers.keys import KEYS_FILE, Keyring
from compactd.models.providers.network import Address, address_of, is_local_host
from compactd.models.providers.response import ProviderApi
from compactd.models.providers.retries import Clock, RetryPolicy
from compactd.protocol.errors import NoProvider

WireName = Literal["openai", "openai_responses", "anthropic", "gemini", "ollama"]
"""The name of an API that compactd can use."""


class KnownProvider(Struct, frozen=True, kw_only=True):
    """What compactd knows about a provider without being told."""

    base_url: str | None
    """The provider's address; None if each user has a different one."""
    keys: tuple[str, ...] = ()
    """Environment variables that may contain the provider's key. The first that is set counts."""
    urls: tuple[str, ...] = ()
    """Environment variables in which a user can set another address; by default `<NAME>_BASE_URL`."""
    wire: WireName = "openai"
    """The API that the provider has."""
    needs_key: bool = True
    """Whether the provider refuses requests without a key."""
    header: str = "Authorization"
    """The header that contains the key, unless `KEY_HEADERS` names another for the API."""
    hosts: tuple[str, ...] = ()
    """Further hosts of the provider, over https on the usual port. A leading dot means all names that end
    with it."""


KNOWN_PROVIDERS = {
    "openai": KnownProvider(
        base_url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        urls=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        # Data residency (OpenAI, "Your data", seen 2026-11).
        hosts=("eu.api.openai.com", "us.api.openai.com"),
    ),
    "anthropic": KnownProvider(
        base_url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY",),
        wire="anthropic",
    ),
    "google": KnownProvider(
        base_url="https://generativelanguage.googleapis.com",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        urls=("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"),
        wire="gemini",
    ),
    "azure": KnownProvider(
        base_url=None,
        keys=("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
        urls=("AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"),
        header="api-key",
        # Each resource has its own host name below these; all belong to Microsoft.
        hosts=(".openai.azure.com", ".services.ai.azure.com"),
    ),
    "ollama": KnownProvider(
        base_url="http://127.0.0.1:11434",
        keys=("OLLAMA_API_KEY",),
        urls=("OLLAMA_HOST",),
        wire="ollama",
        needs_key=False,
    ),
    "openrouter": KnownProvider(base_url="https://openrouter.ai/api/v1", keys=("OPENROUTER_API_KEY",)),
    "deepseek": KnownProvider(base_url="https://api.deepseek.com", keys=("DEEPSEEK_API_KEY",)),
    "groq": KnownProvider(base_url="https://api.groq.com/openai/v1", keys=("GROQ_API_KEY",)),
    "mistral": KnownProvider(base_url="https://api.mistral.ai/v1", keys=("MISTRAL_API_KEY",)),
    "xai": KnownProvider(base_url="https://api.x.ai/v1", keys=("XAI_API_KEY",)),
    "moonshotai": KnownProvider(
        base_url="https://api.moonshot.ai/v1", keys=("MOONSHOT_API_KEY",), urls=("MOONSHOT_BASE_URL",)
    ),
    "zai": KnownProvider(base_url="https://api.z.ai/api/paas/v4", keys=("ZAI_API_KEY", "Z_AI_API_KEY")),
    "alibaba": KnownProvider(
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1", keys=("DASHSCOPE_API_KEY",)
    ),
    "minimax": KnownProvider(base_url="https://api.minimax.io/v1", keys=("MINIMAX_API_KEY",)),
    "perplexity": KnownProvider(base_url="https://api.perplexity.ai", keys=("PERPLEXITY_API_KEY",)),
    "togetherai": KnownProvider(base_url="https://api.together.xyz/v1", keys=("TOGETHER_API_KEY",)),
    "fireworks-ai": KnownProvider(
        base_url="https://api.fireworks.ai/inference/v1", keys=("FIREWORKS_API_KEY",)
    ),
    "cerebras": KnownProvider(base_url="https://api.cerebras.ai/v1", keys=("CEREBRAS_API_KEY",)),
    "nvidia": KnownProvider(base_url="https://integrate.api.nvidia.com/v1", keys=("NVIDIA_API_KEY",)),
    "huggingface": KnownProvider(base_url="https://router.huggingface.co/v1", keys=("HF_TOKEN",)),
    "lmstudio": KnownProvider(
        base_url="http://127.0.0.1:1234/v1", keys=("LMSTUDIO_API_KEY",), needs_key=False
    ),
    "llama-cpp": KnownProvider(base_url="http://127.0.0.1:8080/v1", keys=("LLAMA_API_KEY",), needs_key=False),
    "vllm": KnownProvider(base_url="http://127.0.0.1:8000/v1", keys=("VLLM_API_KEY",), needs_key=False),
}
"""The known providers by their names in the registry."""

KEY_HEADERS: Mapping[WireName, str] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
"""The header that contains the key, for APIs that have a header of their own."""

# Providers that need other credentials than a key.
_OTHER_KINDS = frozenset(("amazon-bedrock", "google-vertex", "github-copilot", "openai-codex"))

_WIRE_NAMES: Mapping[str, tuple[str, WireName]] = {
    "openai-responses": ("openai", "openai_responses"),
    "openai-chat": ("openai", "openai"),
}
"""(provider, API) for names that select one of OpenAI's APIs: `openai-responses/my-model`."""

_OPENAI_HOST = "api.openai.com"


def provider_for(
    model: str,
    *,
    provider: str | None,
    base_url: str | None,
    keyring: Keyring,
    links: ConnectionPool,
    clock: Clock,
    wire: WireName | None = None,
    retries: RetryPolicy | None = None,
) -> tuple[HttpProvider, str]:
    """Return the provider for requests to `model`, and the id by which it knows the model.

    `provider` may be None if the model's name begins with it (`provider/id`) or `base_url` shows it.
    `base_url` is the address that the client gave; it never comes from a workspace. Without `base_url`, the
    address is from the environment, `keys.toml`, or the provider's default. A key is sent to a client's
    address only if the address is the provider's own, or if the user named it for this key in the environment
    or in `keys.toml`. `wire` selects another API than the provider's usual one.

    Raises `NoProvider` if no address is known, or if a key is needed and there is none.
    """
    name, id = split_name(model, provider, base_url)
    name, wire = _WIRE_NAMES.get(name, (name, wire))
    # The client chooses the name. For an unknown one no environment variable is read, only `keys.toml`.
    known = KNOWN_PROVIDERS.get(name) or KnownProvider(base_url=None, needs_key=False)
    own = keyring.base_url(name, url_variables(name, known))
    # The address that is checked must be the one that is used, so strip everything else from it.
    chosen = bare_endpoint(base_url) if base_url else own or known.base_url
    if chosen is None:
        raise NoProvider(_no_address(name), provider=name, model=model)
    speaks = wire or known.wire
    chosen = _ollama_host(chosen) if name == "ollama" else chosen
    address = address_of(chosen)
    if address is None:
        raise NoProvider(f"the base_url for {name} is not an http or https URL", provider=name, model=model)
    if wire is None and address.host == _OPENAI_HOST:
        speaks = "openai_responses"
    holder_name = name if not base_url else _holder(name, known, address, keyring)
    holder = known if holder_name in (None, name) else KNOWN_PROVIDERS[holder_name]
    key = None if holder_name is None else keyring.key(holder_name, holder.keys)
    withheld = "" if holder_name is not None else _why_withheld(name, known, address)
    if key is None and holder.needs_key and not is_local_host(address.host):
        raise NoProvider(
            withheld or _no_key(name, holder),
            provider=name,
            model=model,
            env=[] if withheld else list(holder.keys),
        )
    asked = HttpProvider(
        name=name,
        # Ollama's messages are OpenAI's except for pictures and arguments, which `OllamaApi` converts.
        shape="openai" if speaks == "ollama" else speaks,
        wire=_wire(speaks, address),
        compacting=_compacting(name, speaks),
        base_url=_tidy(chosen, address, speaks, is_known=chosen == known.base_url),
        # 2023-06-01 is the only version of the API.
        headers={"anthropic-version": "2023-06-01"} if speaks == "anthropic" else {},
        key_header=KEY_HEADERS.get(speaks, holder.header),
        key=key,
        withheld=withheld if withheld and keyring.key(name, known.keys) is not None else "",
        links=links,
        retries=retries or RetryPolicy(),
        clock=clock,
    )
    return asked, id


def split_name(model: str, provider: str | None, base_url: str | None) -> tuple[str, str]:
    """Return (the registry's name of the provider, the model's id at the provider). The provider is the
    one given, the prefix of `model`, or the one at `base_url`; an unknown address is called `local`.
    Raises `NoProvider` if none of these names a provider."""
    first, slash, rest = model.partition("/")
    named = provider_of(provider) if provider else None
    if slash and rest and named in (None, provider_of(first)):
        prefix = provider_of(first)
        if named is not None or prefix in KNOWN_PROVIDERS or prefix in _OTHER_KINDS or prefix in _WIRE_NAMES:
            return prefix, rest
    if named is not None:
        return named, model
    at = provider_at_host(host_of(base_url)) if base_url else None
    if at is not None:
        return at, model
    if base_url:
        return "local", model
    raise NoProvider(f"no provider is named for the model {model!r}: write it as provider/id", model=model)


def _holder(name: str, known: KnownProvider, address: Address, keyring: Keyring) -> str | None:
    """Return the name of the provider whose key may be sent to the client's `address`; None if no key may
    be sent."""
    if _is_provider_address(known, address) or any(
        _is_same_place(_ollama_host(named) if name == "ollama" else named, address)
        for named in keyring.named_addresses(name, url_variables(name, known))
    ):
        return name
    # The address may belong to another provider that serves this model too. Then use that one's key.
    return next(
        (
            other
            for other, its in KNOWN_PROVIDERS.items()
            if its.needs_key and _is_provider_address(its, address)
        ),
        None,
    )


def _is_provider_address(known: KnownProvider, address: Address) -> bool:
    """Return whether `address` is the provider's own: exactly its host and port, not a similar name."""
    if known.base_url is not None and _is_same_place(known.base_url, address):
        return True
    if address.scheme != "https" or address.port not in (None, 443):
        return False
    return any(
        address.host.endswith(host) if host.startswith(".") else address.host == host for host in known.hosts
    )


def _is_same_place(named: str, address: Address) -> bool:
    """Return whether `named` (a URL, or a host, which means https) has the scheme, host and port of
    `address`."""
    at = address_of(named if "://" in named else f"https://{named}")
    return at is not None and (at.scheme, at.host, _port(at)) == (
        address.scheme,
        address.host,
        _port(address),
    )


def _port(address: Address) -> int:
    return address.port or (443 if address.scheme == "https" else 80)


def url_variables(name: str, known: KnownProvider) -> tuple[str, ...]:
    """Return the environment variables in which the user can set the address of a known provider."""
    return known.urls or ((f"{_variable(name)}_BASE_URL",) if name in KNOWN_PROVIDERS else ())


def _no_address(name: str) -> str:
    """Return the error's sentence if no address is known."""
    if name in _OTHER_KINDS:
        return f"{name} uses no API key, so compactd cannot call it. Use a gateway, and give its base_url"
    return f"the address of the provider {name!r} is not known: give base_url"


def _no_key(name: str, holder: KnownProvider) -> str:
    """Return the error's sentence if a key is needed and there is none."""
    where = " or ".join(holder.keys) or "its key"
    return (
        f"there is no API key for {name}: set {where} before the daemon starts, or write it into {KEYS_FILE}"
    )


def _why_withheld(name: str, known: KnownProvider, address: Address) -> str:
    """Return the sentence that says why no key is sent to the client's address, and how to allow it."""
    plain = " over plain http" if address.scheme == "http" else ""
    variables = url_variables(name, known)
    where = f", or set {variables[0]} before the daemon starts" if variables else ""
    return (
        f"no key is sent to {address.place}{plain}: it is not an address of {name}, and you have not allowed "
        f'this host. To send the key, add `hosts = ["{address.place}"]` to [{name}] in {KEYS_FILE}{where}'
    )


def _variable(name: str) -> str:
    """Return the first part of the names of a provider's environment variables."""
    return re.sub("[^A-Z0-9]+", "_", name.upper()).strip("_")


def _ollama_host(host: str) -> str:
    """Return the URL for a value of `OLLAMA_HOST`: a host, host:port or URL. A wildcard address (`0.0.0.0`)
    becomes loopback."""
    # Ollama's envconfig/config.go: port 11434, but 80 and 443 where a scheme is written (seen 2026-10).
    url = host if "://" in host else f"http://{host}"
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    has_port = re.search(r":\d+$", place) is not None and (place.count(":") == 1 or "]" in place)
    if place.count(":") > 1 and "]" not in place:
        place = f"[{place}]"
    if not has_port and "://" not in host:
        place = f"{place}:11434"
    place = re.sub(r"^0\.0\.0\.0(?=:|$)", "127.0.0.1", place)
    place = re.sub(r"^\[::\]", "[::1]", place)
    if place.startswith(":"):
        place = f"127.0.0.1{place}"
    return f"{scheme}://{place}{slash}{path}"


_ENDINGS: Mapping[WireName, tuple[str, ...]] = {
    "openai": ("/chat/completions",),
    "openai_responses": ("/responses",),
    "anthropic": ("/v1/messages", "/v1"),
    "gemini": ("/v1beta/models", "/v1beta"),
    "ollama": ("/api/chat", "/api", "/v1"),
}
"""Endings that are removed from a base URL. Users write them, but the paths that compactd appends contain
them too."""


def _tidy(base_url: str, address: Address, wire: WireName, *, is_known: bool) -> str:
    """Return `base_url` in the form to which the API's paths can be appended. `is_known` says that it is
    the provider's default."""
    url = base_url.strip().rstrip("/")
    for ending in _ENDINGS[wire]:
        if url.endswith(ending):
            return url.removesuffix(ending)
    if wire not in ("openai", "openai_responses") or address.path or is_known:
        return url
    at = provider_at_host(host_of(address.place))
    if at == "azure":
        # Azure's "v1" API, which needs no api-version (Microsoft Learn, "Azure OpenAI v1 API", seen 2026-10).
        return f"{url}/openai/v1"
    known = KNOWN_PROVIDERS[at].base_url if at in KNOWN_PROVIDERS else None
    if known is not None and known.startswith(f"{address.place}/"):
        return known
    # vLLM, llama.cpp, LM Studio and Ollama all serve OpenAI's API below /v1.
    return f"{url}/v1"


def _wire(name: WireName, address: Address) -> ProviderApi:
    # Each is imported only when needed.
    """Return the code for an API. Its module is imported at the first use."""
    match name:
        case "openai":
            from compactd.models.providers.openai import ChatApi

            is_openai = address.host == _OPENAI_HOST or address.host.endswith(".openai.azure.com")
            return ChatApi("max_completion_tokens" if is_openai else "max_tokens")
        case "openai_responses":
            from compactd.models.providers.openai_responses import ResponsesApi

            return ResponsesApi()
        case "anthropic":
            from compactd.models.providers.anthropic import MessagesApi

            return MessagesApi()
        case "gemini":
            from compactd.models.providers.gemini import GenerateApi

            return GenerateApi()
        case "ollama":
            from compactd.models.providers.ollama import OllamaApi

            return OllamaApi()


def _compacting(name: str, speaks: WireName) -> ProviderApi | None:
    """Return the code for a provider's own compaction; None if it has none. Other providers with Anthropic's
    API do not have it."""
    if speaks == "anthropic" and name == "anthropic":
        from compactd.models.providers.anthropic import CompactionApi

        return CompactionApi()
    if speaks == "openai_responses":
        from compactd.models.providers.openai_responses import CompactApi

        return CompactApi()
    return None
