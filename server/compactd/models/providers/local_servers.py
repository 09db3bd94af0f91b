"""Ask a model server on this machine for its context window, if the user allows it.

Only loopback addresses are asked. No name is resolved, no proxy is used, no redirect is followed, no key is
sent, and no question makes a server load a model. Facts about each server, seen 2026-11:

- Ollama: `/api/ps` has the window that is allocated for a loaded model. `/api/show` has the model's maximum
  and the `num_ctx` with which the model was created (docs.ollama.com/api/ps, ollama docs/context-length.mdx;
  github.com/1ay1/agentty/issues/49 measured 4,096 allocated tokens and a maximum of 40,960).
- LM Studio: `/api/v0/models` has `loaded_context_length`, the window in use, next to `max_context_length`.
  From version 0.4 on, `/api/v1/models` has `loaded_instances[].config.context_length`
  (github.com/can1357/oh-my-pi/issues/6082, github.com/co-l/openfox/issues/49).
- llama.cpp: `/props` has `default_generation_settings.n_ctx`, the window of one slot: option `-c` divided by
  option `-np`. A llama.cpp router answers 0 there. With `?model=` it answers for that model, and loads the
  model unless `autoload=false`. llama-swap ignores `autoload` (llama.cpp tools/server/README.md,
  github.com/mostlygeek/llama-swap/pull/886).
- vLLM and SGLang: `/v1/models` has `max_model_len`. The entry of an adapter lacks it; the entry of the
  adapter's `parent` has it (vLLM entrypoints/openai/serving_models.py,
  github.com/sgl-project/sglang/pull/4809). SGLang refuses prompts that are larger than its cache, which can
  be smaller than the window (59,862 of 163,840 tokens in github.com/sgl-project/sglang/issues/4048).
- text-generation-inference: `/info` has `max_total_tokens`, for input and output together
  (github.com/huggingface/text-generation-inference/pull/196, github.com/continuedev/continue/pull/755).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, json

from compactd.models.providers.json_fields import Fields, NoJson

if TYPE_CHECKING:
    import httpx

BODY_BYTES = 1024 * 1024
"""The maximum number of bytes of an answer. A longer answer is ignored. Ollama's `/api/show` of a large model
has 200 KB."""

MIN_SERVER_WINDOW = 256
MAX_SERVER_WINDOW = 100_000_000
"""The largest plausible window, in tokens. `MIN_SERVER_WINDOW` is the smallest. A number outside these
limits is ignored."""

_CLOSING_S = 1.0
"""The maximum number of seconds for closing the connections."""
_TAILS = ("/chat/completions", "/completions", "/responses", "/messages", "/v1", "/v0", "/api", "/")
"""Endings of a base URL that are removed before a path such as `/props` is appended."""

_LABEL = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
"""The characters of a label of a host name."""


class StatedWindow(Struct, frozen=True, kw_only=True):
    """The window that a server says it uses for a model. The maximum that the model could have does not
    count."""

    window: int
    """The window in tokens."""
    endpoint: str
    """The server, for example `http://localhost:8080`, with the host as the user wrote it."""
    path: str
    """The path that was asked, for example `/props`."""


class _Place(Struct, frozen=True, kw_only=True):
    """The parts of a URL that leads to this machine."""

    scheme: str
    host: str
    """The host as written, in lower case; an IPv6 address in brackets."""
    port: int
    """The port, also if the URL does not name it."""
    root: str
    """The path before `/v1`: empty, or with a `/` at its start and none at its end."""
    addresses: tuple[str, ...]
    """The IP addresses to connect to, in order. They follow from the host without a name lookup."""

    @property
    def endpoint(self) -> str:
        """The URL of the server, without the API's path."""
        return f"{self.scheme}://{self.host}:{self.port}{self.root}"


def is_local_server(base_url: str) -> bool:
    """Return whether `base_url` certainly names this machine. No name is resolved.

    True for http and https URLs of 127.0.0.0/8, ::1, `localhost` and names below it. False for everything
    else, even if it might work: other spellings of an address (`127.1`, IPv4 in IPv6), `0.0.0.0`, a user or
    password, white space, a zone, a dot after the name.
    """
    return _place(base_url) is not None


async def stated_window(base_url: str, model: str, deadline_s: float) -> StatedWindow | None:
    """Return the window that the server at `base_url` states for `model` (the model's id at the server); None
    if it states none.

    All questions of all kinds of server are sent at the same time. If several are answered, the most specific
    answer counts: the window of the loaded model comes before a configured one. The result is None if
    the server names only an upper bound (`n_ctx_train`, `max_context_length`, Ollama's `model_info`). It is
    also None after every failure: not loopback, no server, a status other than 200, a redirect, HTML, a body
    above `BODY_BYTES`, an implausible number.

    Only answers that arrive within `deadline_s` seconds count. Before that, the first call loads httpx in a
    thread, which takes 0.1 s. Raises only `CancelledError`.
    """
    place = _place(base_url)
    if place is None or not model:
        return None
    client = await asyncio.to_thread(_client, place.scheme)
    talk = _ServerProbe(client, place, model)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                await talk.ask_all()
    finally:
        with suppress(TimeoutError, OSError, RuntimeError):
            async with asyncio.timeout(_CLOSING_S):
                await client.aclose()
    return next(talk.statements(), None)


class _ServerProbe:
    """The questions to one server about one model, and the answers so far."""

    def __init__(self, client: httpx.AsyncClient, place: _Place, model: str) -> None:
        self._client = client
        self._place = place
        self._model = model
        self._address = place.addresses[0]
        self._answers: dict[str, Fields] = {}

    async def ask_all(self) -> None:
        """Ask the questions of every kind of server at the same time. Ask nothing if no server listens."""
        if not await self._is_reachable():
            return
        async with asyncio.TaskGroup() as group:
            for path in ("/api/v0/models", "/api/v1/models", "/info"):
                group.create_task(self._ask(path))
            group.create_task(self._ask_openai_like())
            group.create_task(self._ask_ollama())

    def statements(self) -> Iterator[StatedWindow]:
        """Yield the plausible windows in the answers, the most specific first."""
        for path, number in (
            ("/api/ps", self._ollama_loaded()),
            ("/api/v1/models", self._lm_studio_instance()),
            ("/api/v0/models", self._lm_studio_loaded()),
            ("/props", self._llama_cpp_slot()),
            ("/info", self._tgi_total()),
            ("/v1/models", self._card_window()),
            ("/api/show", self._ollama_made_with()),
        ):
            window = _window(number)
            if window is not None:
                yield StatedWindow(window=window, endpoint=self._place.endpoint, path=path)

    # --- asking ---------------------------------------------------------------------------------------

    async def _is_reachable(self) -> bool:
        """Connect to the addresses in turn, and use the first at which a server listens. Return false if
        there is none."""
        for address in self._place.addresses:
            try:
                _, writer = await asyncio.open_connection(address, self._place.port)
            except OSError:
                continue
            writer.close()
            self._address = address
            return True
        return False

    async def _ask_openai_like(self) -> None:
        """Ask vLLM, SGLang, llama.cpp and others with OpenAI's paths."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask("/v1/models"))
            group.create_task(self._ask("/props"))
        card = _find_named(self._answer("/v1/models").objects("data"), "id", self._model)
        if card is None:
            return
        if card.text("owned_by") == "sglang":
            await self._ask("/get_server_info")
        # A llama.cpp router states nothing about a model that is not loaded, and asking could load it.
        is_router = self._answer("/props").text("role") == "router"
        if is_router and card.object("status").text("value") in ("loaded", "sleeping"):
            from urllib.parse import quote

            name = quote(card.text("id"), safe="")
            await self._ask("/props?model=", f"/props?model={name}&autoload=false")

    async def _ask_ollama(self) -> None:
        """Ask Ollama which models are loaded. If the model is not, ask for the `num_ctx` with which it was
        created."""
        await self._ask("/api/ps")
        if "models" in self._answer("/api/ps") and self._ollama_loaded() is None:
            await self._ask("/api/show", body=json.encode({"model": self._model}))

    async def _ask(self, name: str, path: str = "", body: bytes | None = None) -> None:
        """Request `path`, or `name` if `path` is empty. With a `body`, the request is a POST. Store the
        answer under `name` if it has status 200 and is a JSON object of at most `BODY_BYTES`."""
        import httpx

        place = self._place
        headers = {"Host": f"{place.host}:{place.port}", "Accept-Encoding": "identity"}
        url = f"{place.scheme}://{self._address_in_url}:{place.port}{place.root}{path or name}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        method = "GET" if body is None else "POST"
        named = {"sni_hostname": place.host.strip("[]")}
        # Raised by httpx: its own errors, `RuntimeError` for broken streams, `ValueError` for odd headers.
        with suppress(httpx.HTTPError, httpx.InvalidURL, OSError, RuntimeError, ValueError, NoJson):
            async with self._client.stream(
                method, url, headers=headers, content=body, extensions=named
            ) as response:
                if response.status_code == 200:
                    found = await _body(response)
                    if found is not None:
                        self._answers[name] = Fields(found)

    @property
    def _address_in_url(self) -> str:
        return f"[{self._address}]" if ":" in self._address else self._address

    # --- reading --------------------------------------------------------------------------------------

    def _answer(self, name: str) -> Fields:
        """Return the stored answer; an empty object if there is none."""
        return self._answers.get(name) or Fields(b"{}")

    def _ollama_loaded(self) -> float | None:
        """Return the window that Ollama allocated for the loaded model."""
        models = self._answer("/api/ps").objects("models")
        model = _full_name(self._model)
        names = [_full_name(one.text("name") or one.text("model")) for one in models]
        found = next((one for one, name in zip(models, names, strict=True) if _is_same(name, model)), None)
        return None if found is None else found.number("context_length")

    def _ollama_made_with(self) -> float | None:
        """Return the `num_ctx` with which the Ollama model was created, but at most the model's maximum."""
        shown = self._answer("/api/show")
        number = _parameter(shown.text("parameters"), "num_ctx")
        info = shown.object("model_info")
        most = info.number(f"{info.text('general.architecture')}.context_length")
        # Ollama lowers a larger `num_ctx` to the window that the model was trained with.
        return number if number is None or most is None else min(number, most)

    def _lm_studio_instance(self) -> float | None:
        """Return the window of the loaded instance, from LM Studio 0.4 on."""
        numbers: list[float] = []
        for model in self._answer("/api/v1/models").objects("models"):
            instances = model.objects("loaded_instances")
            exact = _find_named(instances, "id", self._model)
            if exact is not None:
                instances = [exact]
            elif not _is_same(model.text("key"), self._model):
                continue
            numbers += [n for one in instances if (n := one.object("config").number("context_length"))]
        # With several instances under one key, any of them may answer.
        return min(numbers, default=None)

    def _lm_studio_loaded(self) -> float | None:
        """Return the window of the loaded model in LM Studio."""
        model = _find_named(self._answer("/api/v0/models").objects("data"), "id", self._model)
        if model is None or model.text("state") not in ("loaded", ""):
            return None
        return model.number("loaded_context_length")

    def _llama_cpp_slot(self) -> float | None:
        # Unless this is a router, its one model serves every name.
        """Return the window of one slot of llama.cpp."""
        answer = self._answer("/props?model=" if "/props?model=" in self._answers else "/props")
        return answer.object("default_generation_settings").number("n_ctx")

    def _tgi_total(self) -> float | None:
        """Return the limit of text-generation-inference for input and output together."""
        info = self._answer("/info")
        return info.number("max_total_tokens") if info.text("model_id") else None

    def _card_window(self) -> float | None:
        """Return the window in the model's entry of `/v1/models`, or the size of SGLang's cache if that is
        smaller."""
        cards = self._answer("/v1/models").objects("data")
        card = _find_named(cards, "id", self._model)
        if card is None:
            return None
        window = card.number("max_model_len")
        if window is None and card.text("parent"):
            parent = _find_named(cards, "id", card.text("parent"))
            window = None if parent is None else parent.number("max_model_len")
        if window is None:
            return card.object("meta").number("n_ctx")
        cache = self._answer("/get_server_info").number("max_total_num_tokens")
        return window if cache is None else min(window, cache)


async def _body(response: httpx.Response) -> bytes | None:
    """Return the whole body; None if it is longer than `BODY_BYTES`."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > BODY_BYTES:
            return None
    return bytes(body)


def _client(scheme: str) -> httpx.AsyncClient:
    """Create an HTTP client. This takes 0.1 s the first time, and 50 ms more for https, so call it in a
    thread."""
    import httpx

    from compactd.models.providers.http import preload
    from compactd.models.providers.network import context_without_certificates, trusted_certificates

    preload()
    return httpx.AsyncClient(
        verify=trusted_certificates({}) if scheme == "https" else context_without_certificates(),
        trust_env=False,
        follow_redirects=False,
        timeout=None,
    )


def _place(base_url: str) -> _Place | None:
    """Take `base_url` apart. Return None if it does not certainly name this machine."""
    from urllib.parse import urlsplit

    if not base_url.isascii() or not base_url.isprintable() or " " in base_url:
        return None
    try:
        parts = urlsplit(base_url)
        port, name = parts.port, parts.hostname or ""
    except ValueError:
        return None
    addresses = _addresses(name)
    host = f"[{name}]" if ":" in name else name
    plain = host if port is None else f"{host}:{port}"
    if parts.scheme not in ("http", "https") or not addresses or port == 0 or parts.netloc.lower() != plain:
        return None
    return _Place(
        scheme=parts.scheme,
        host=host,
        port=port or (443 if parts.scheme == "https" else 80),
        root=_root(parts.path),
        addresses=addresses,
    )


def _addresses(name: str) -> tuple[str, ...]:
    """Return the IP addresses to connect to for the host `name`; none if it is not this machine."""
    from ipaddress import IPv6Address, ip_address

    labels = name.split(".")
    if labels[-1] == "localhost" and all(label and _LABEL.issuperset(label) for label in labels):
        return ("127.0.0.1", "::1")
    try:
        address = ip_address(name)
    except ValueError:
        return ()
    is_here = address == IPv6Address(1) if isinstance(address, IPv6Address) else address.is_loopback
    return (str(address),) if is_here else ()


def _root(path: str) -> str:
    """Return the path of a base URL without the API's endings (`_TAILS`)."""
    while tail := next((tail for tail in _TAILS if path.endswith(tail)), ""):
        path = path[: -len(tail)]
    return path


def _window(number: float | None) -> int | None:
    """Return `number` if it is a plausible window, otherwise None. A plausible window is an integer from
    `MIN_SERVER_WINDOW` to `MAX_SERVER_WINDOW`."""
    if number is None or not MIN_SERVER_WINDOW <= number <= MAX_SERVER_WINDOW or number != int(number):
        return None
    return int(number)


def _find_named(items: Sequence[Fields], field: str, model: str) -> Fields | None:
    """Return the item whose `field` is `model`. If there is none, ignore case and a provider's name before a
    `/` in `model`."""
    exact = next((one for one in items if one.text(field) == model), None)
    return exact or next((one for one in items if _is_same(one.text(field), model)), None)


def _is_same(name: str, model: str) -> bool:
    """Return whether `model` is `name`, or ends with a `/` and `name`. Case is ignored."""
    name, model = name.lower(), model.lower()
    return bool(name) and (model == name or model.endswith(f"/{name}"))


def _full_name(name: str) -> str:
    """Return Ollama's full name of a model. A name without a tag means `:latest`."""
    return name if not name or ":" in name.rpartition("/")[2] else f"{name}:latest"


def _parameter(parameters: str, name: str) -> float | None:
    """Return the number in the last line `name value` of Ollama's parameters; None if there is none."""
    values = [line.split()[1:] for line in parameters.splitlines() if line.split()[:1] == [name]]
    with suppress(ValueError, IndexError):
        return float(values[-1][0])
    return None
