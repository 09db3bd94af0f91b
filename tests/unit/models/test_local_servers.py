"""Asking model servers on this machine for their window: real HTTP on loopback, each server's own JSON."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactd.models.providers.local_servers import BODY_BYTES, StatedWindow, is_local_server, stated_window

LONG_S = 10.0
"""No server below is waited for so long."""
SHORT_S = 0.1

Answer = object | bytes | Callable[[asyncio.StreamWriter], object]
"""JSON with status 200; bytes as they are sent; or what is done with the connection."""


class Server:
    """A server on loopback that answers by path; anything else is 404."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.hosts: set[str] = set()
        self.bodies: list[object] = []
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.left = asyncio.Event()
        """Set while every client has closed its connections."""

    def url(self, tail: str = "/v1") -> str:
        return f"http://127.0.0.1:{self.port}{tail}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.left.clear()
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n"):
                method, path, _ = head[0].split(" ")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                if method == "POST":
                    self.bodies.append(json.loads(await reader.readexactly(int(headers["content-length"]))))
                self.asked.append(path)
                self.hosts.add(headers["host"])
                answer = self.answers.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                if callable(answer):
                    await answer(writer)
                    return
                writer.write(answer if isinstance(answer, bytes) else ok(json.dumps(answer).encode()))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            if all(writer.is_closing() for writer in self.writers):
                self.left.set()


def ok(body: bytes, *headers: str) -> bytes:
    lines = ("HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def serving(answers: Mapping[str, Answer], host: str = "127.0.0.1") -> AsyncIterator[Server]:
    server = Server(answers)
    listening = await asyncio.start_server(server.serve, host, 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in server.writers:
            writer.close()


async def stated(
    answers: Mapping[str, Answer], model: str, tail: str = "/v1", deadline_s: float = LONG_S
) -> tuple[int, str] | None:
    """(window, path) that a server with these answers states."""
    async with serving(answers) as server:
        found = await stated_window(server.url(tail), model, deadline_s)
    return None if found is None else (found.window, found.path)


# What the servers answer, cut to what surrounds the window.

VLLM = {
    "object": "list",
    "data": [
        {
            "id": "Qwen/Qwen2.5-32B-Instruct",
            "object": "model",
            "created": 1744891234,
            "owned_by": "vllm",
            "root": "Qwen/Qwen2.5-32B-Instruct",
            "parent": None,
            "max_model_len": 24576,
            "permission": [{"id": "modelperm-1", "object": "model_permission", "is_blocking": False}],
        },
        {
            "id": "sql-lora",
            "object": "model",
            "owned_by": "vllm",
            "root": "/loras/sql",
            "parent": "Qwen/Qwen2.5-32B-Instruct",
            "max_model_len": None,
        },
    ],
}
SGLANG = {
    "object": "list",
    "data": [
        {
            "id": "deepseek-r1",
            "object": "model",
            "owned_by": "sglang",
            "root": "deepseek-r1",
            "max_model_len": 163840,
        }
    ],
}
LLAMA_MODELS = {
    "models": [{"name": "qwen3-0.6b.gguf", "model": "qwen3-0.6b.gguf", "type": "model"}],
    "object": "list",
    "data": [
        {
            "id": "qwen3-0.6b.gguf",
            "object": "model",
            "owned_by": "llamacpp",
            "meta": {"vocab_type": 2, "n_vocab": 151936, "n_ctx": 32768, "n_ctx_train": 40960},
        }
    ],
}
LLAMA_PROPS = {
    "default_generation_settings": {"params": {"n_predict": -1}, "n_ctx": 8192},
    "total_slots": 4,
    "model_path": "/models/qwen3-0.6b.gguf",
    "build_info": "b7079-abcdef",
}
ROUTER_PROPS = {
    "role": "router",
    "max_instances": 4,
    "model_alias": "llama-server",
    "model_path": "none",
    "default_generation_settings": {"params": {}, "n_ctx": 0},
}
LM_STUDIO_0 = {
    "object": "list",
    "data": [
        {
            "id": "google/gemma-4-12b-qat",
            "object": "model",
            "type": "llm",
            "state": "loaded",
            "max_context_length": 262144,
            "loaded_context_length": 122880,
        },
        {
            "id": "qwen/qwen3-8b",
            "object": "model",
            "type": "llm",
            "state": "not-loaded",
            "max_context_length": 40960,
            "loaded_context_length": 4096,
        },
    ],
}
LM_STUDIO_1 = {
    "models": [
        {
            "type": "llm",
            "key": "google/gemma-4-26b-a4b",
            "loaded_instances": [
                {"id": "google/gemma-4-26b-a4b", "config": {"context_length": 65536, "parallel": 4}},
                {"id": "google/gemma-4-26b-a4b:2", "config": {"context_length": 4096, "parallel": 4}},
            ],
            "max_context_length": 262144,
        },
        {"type": "llm", "key": "idle", "loaded_instances": [], "max_context_length": 262144},
        {
            "type": "llm",
            "key": "twice",
            "loaded_instances": [
                {"id": "big", "config": {"context_length": 65536}},
                {"id": "small", "config": {"context_length": 8192}},
            ],
        },
    ]
}
OLLAMA_PS = {
    "models": [
        {
            "name": "gemma4:latest",
            "model": "gemma4:latest",
            "size": 6591830464,
            "details": {"format": "gguf", "family": "gemma4", "parameter_size": "8.0B"},
            "expires_at": "2025-10-17T16:47:07.93355-07:00",
            "size_vram": 5333539264,
            "context_length": 4096,
        }
    ]
}
OLLAMA_SHOW = {
    "modelfile": "# Modelfile generated by ollama show\nFROM llava:latest\n",
    "parameters": 'num_keep                24\nnum_ctx                 16384\nstop    "<|eot_id|>"',
    "details": {"format": "gguf", "family": "llama"},
    "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
}
TGI = {
    "model_id": "bigscience/bloom-560m",
    "model_dtype": "torch.float16",
    "max_concurrent_requests": 128,
    "max_input_tokens": 3072,
    "max_total_tokens": 4096,
    "version": "2.1.2",
}


# --- what each server says --------------------------------------------------------------------------------


async def test_vllm_states_what_it_was_started_with_and_an_adapter_has_its_base_models() -> None:
    base = await stated({"/v1/models": VLLM}, "Qwen/Qwen2.5-32B-Instruct")
    prefixed = await stated({"/v1/models": VLLM}, "hosted_vllm/Qwen/Qwen2.5-32B-Instruct")
    adapter = await stated({"/v1/models": VLLM}, "sql-lora")
    other = await stated({"/v1/models": VLLM}, "gpt-4")

    assert [base, prefixed, adapter, other] == [(24576, "/v1/models")] * 3 + [None]


async def test_a_models_whole_name_counts_before_the_end_of_it() -> None:
    cards = [{"id": "qwen", "max_model_len": 4096}, {"id": "org/qwen", "max_model_len": 8192}]

    assert await stated({"/v1/models": {"data": cards}}, "org/qwen") == (8192, "/v1/models")
    assert await stated({"/v1/models": {"data": cards[:1]}}, "org/qwen") == (4096, "/v1/models")
    assert await stated({"/v1/models": {"data": cards[1:]}}, "qwen") is None


async def test_sglang_is_believed_only_as_far_as_its_cache_holds() -> None:
    info = {"model_path": "deepseek-r1", "max_total_num_tokens": 59863, "max_req_input_len": 59857}

    alone = await stated({"/v1/models": SGLANG}, "deepseek-r1")
    small = await stated({"/v1/models": SGLANG, "/get_server_info": info}, "deepseek-r1")
    large = await stated(
        {"/v1/models": SGLANG, "/get_server_info": {"max_total_num_tokens": 900_000}}, "deepseek-r1"
    )

    assert [alone, small, large] == [
        (163840, "/v1/models"),
        (59863, "/v1/models"),
        (163840, "/v1/models"),
    ]


async def test_llama_cpp_states_what_one_slot_holds_whatever_the_model_is_called() -> None:
    whole = {"/v1/models": LLAMA_MODELS, "/props": LLAMA_PROPS}

    slot = await stated(whole, "qwen3-0.6b.gguf")
    any_name = await stated(whole, "gpt-4")
    # A build, or a gateway, that has no `/props`.
    meta = await stated({"/v1/models": LLAMA_MODELS}, "qwen3-0.6b.gguf")

    assert (slot, any_name, meta) == ((8192, "/props"), (8192, "/props"), (32768, "/v1/models"))


async def test_what_llama_cpp_was_trained_with_is_no_statement() -> None:
    card = {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}

    assert await stated({"/v1/models": {"data": [card]}}, "m") is None
    # While the model is still being loaded.
    assert await stated({"/v1/models": {"data": [{**card, "meta": None}]}}, "m") is None


async def test_a_router_is_asked_for_a_model_it_has_loaded_and_never_made_to_load_one() -> None:
    models = {
        "data": [
            {"id": "ggml-org/gemma:Q4_K_M", "status": {"value": "loaded"}},
            {"id": "asleep", "status": {"value": "sleeping"}},
            {"id": "cold", "status": {"value": "unloaded"}},
        ]
    }
    props = {"default_generation_settings": {"n_ctx": 50176}, "total_slots": 4}
    answers = {
        "/v1/models": models,
        "/props": ROUTER_PROPS,
        "/props?model=ggml-org%2Fgemma%3AQ4_K_M&autoload=false": props,
        "/props?model=asleep&autoload=false": props,
        "/props?model=cold&autoload=false": props,
    }
    async with serving(answers) as server:
        warm = await stated_window(server.url(), "ggml-org/gemma:Q4_K_M", LONG_S)
        asleep = await stated_window(server.url(), "asleep", LONG_S)
        server.asked.clear()
        cold = await stated_window(server.url(), "cold", LONG_S)

    assert warm == asleep == StatedWindow(window=50176, endpoint=server.url(""), path="/props")
    assert (cold, [path for path in server.asked if "cold" in path]) == (None, [])


async def test_a_gateway_that_loads_whatever_it_is_asked_for_is_not_asked() -> None:
    # llama-swap loads the model of `/props?model=`, also with autoload=false.
    error = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 7\r\n\r\nmissing"
    card = {"id": "m", "status": {"value": "loaded"}}
    async with serving({"/v1/models": {"data": [card]}, "/props": error}) as server:
        found = await stated_window(server.url(), "m", LONG_S)

    assert (found, [path for path in server.asked if "?" in path]) == (None, [])


async def test_lm_studio_states_what_is_loaded_and_nothing_of_what_is_not() -> None:
    old = {"/api/v0/models": LM_STUDIO_0, "/v1/models": {"data": [{"id": "google/gemma-4-12b-qat"}]}}
    new = {"/api/v1/models": LM_STUDIO_1}

    seen = [
        await stated(old, "google/gemma-4-12b-qat"),
        await stated(old, "qwen/qwen3-8b"),
        await stated(new, "google/gemma-4-26b-a4b"),
        await stated(new, "google/gemma-4-26b-a4b:2"),
        await stated(new, "idle"),
        await stated(new, "twice"),
    ]

    assert seen == [
        (122880, "/api/v0/models"),
        None,
        (65536, "/api/v1/models"),
        (4096, "/api/v1/models"),
        None,
        (8192, "/api/v1/models"),
    ]


async def test_lm_studio_answers_200_to_what_it_does_not_know_and_that_is_no_statement() -> None:
    unknown = {"error": "Unexpected endpoint or method. (GET /props)"}

    paths = ("/props", "/info", "/api/ps", "/api/v0/models", "/api/v1/models", "/v1/models")

    assert await stated(dict.fromkeys(paths, unknown), "m") is None


async def test_what_ollama_has_loaded_beats_what_the_model_was_made_with() -> None:
    async with serving({"/api/ps": OLLAMA_PS, "/api/show": OLLAMA_SHOW}) as server:
        loaded = await stated_window(server.url("/v1"), "gemma4", LONG_S)
        prefixed = await stated_window(server.url("/api"), "ollama/gemma4:latest", LONG_S)
        shown_before = len(server.bodies)
        other = await stated_window(server.url(""), "llama3.2:3b", LONG_S)

    assert loaded == prefixed == StatedWindow(window=4096, endpoint=server.url(""), path="/api/ps")
    assert other == StatedWindow(window=16384, endpoint=server.url(""), path="/api/show")
    assert (shown_before, server.bodies) == (0, [{"model": "llama3.2:3b"}])


async def test_ollamas_names_without_a_tag_are_the_latest() -> None:
    bare = {"models": [{"model": "gemma4", "context_length": 4096}]}

    assert await stated({"/api/ps": bare}, "gemma4") == (4096, "/api/ps")
    assert await stated({"/api/ps": bare}, "Gemma4:latest") == (4096, "/api/ps")
    assert await stated({"/api/ps": bare}, "gemma4:27b") is None
    assert await stated({"/api/ps": OLLAMA_PS}, "hub:5000/gemma4") == (4096, "/api/ps")


async def test_what_ollamas_model_was_trained_with_is_an_upper_bound_and_no_statement() -> None:
    trained = {**OLLAMA_SHOW, "parameters": "num_keep   24"}
    small = {**OLLAMA_SHOW, "model_info": {"general.architecture": "llama", "llama.context_length": 8192}}

    assert await stated({"/api/ps": {"models": []}, "/api/show": trained}, "llama3.2") is None
    # A larger `num_ctx` than the model was trained with is lowered by Ollama itself.
    assert await stated({"/api/ps": {"models": []}, "/api/show": small}, "llama3.2") == (8192, "/api/show")


async def test_text_generation_inference_states_input_and_output_together() -> None:
    embedder = {"model_id": "BAAI/bge-base", "max_input_length": 512}

    assert await stated({"/info": TGI}, "tgi") == (4096, "/info")
    assert await stated({"/info": embedder}, "tgi") is None
    assert await stated({"/info": {"max_total_tokens": 4096}}, "tgi") is None


async def test_the_most_specific_of_several_statements_counts() -> None:
    card = {"id": "gemma4", "max_model_len": 131072, "meta": {"n_ctx": 65536}}
    answers = {"/api/ps": OLLAMA_PS, "/v1/models": {"data": [card]}, "/props": LLAMA_PROPS}

    assert await stated(answers, "gemma4") == (4096, "/api/ps")


@pytest.mark.parametrize(
    ("tail", "root"),
    [
        ("", ""),
        ("/", ""),
        ("/v1/", ""),
        ("/v1/chat/completions", ""),
        ("/api/v0", ""),
        ("/upstream/qwen/v1", "/upstream/qwen"),
        ("/v1?key=none#top", ""),
    ],
)
async def test_the_questions_start_where_the_base_url_has_its_root(tail, root) -> None:
    async with serving({f"{root}/v1/models": SGLANG}) as server:
        found = await stated_window(server.url(tail), "deepseek-r1", LONG_S)

    assert found == StatedWindow(window=163840, endpoint=server.url(root), path="/v1/models")


async def test_a_name_is_never_looked_up_and_the_server_still_hears_it() -> None:
    async with serving({"/v1/models": SGLANG}) as server:
        found = await stated_window(f"http://My-GPU.localhost:{server.port}/v1", "deepseek-r1", LONG_S)

    assert found == StatedWindow(
        window=163840, endpoint=f"http://my-gpu.localhost:{server.port}", path="/v1/models"
    )
    assert server.hosts == {f"my-gpu.localhost:{server.port}"}


def has_ipv6() -> bool:
    """Whether this machine has the loopback address `::1`."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


async def test_a_server_that_listens_at_ipv6_alone_is_found_by_address_and_by_name() -> None:
    if not has_ipv6():
        # Then such an address is nobody's, and that is no failure.
        assert await stated_window("http://[::1]:8080/v1", "m", LONG_S) is None
        return

    async with serving({"/props": LLAMA_PROPS}, "::1") as server:
        by_address = await stated_window(f"http://[::1]:{server.port}/v1", "m", LONG_S)
        by_name = await stated_window(f"http://localhost:{server.port}/v1", "m", LONG_S)

    assert by_address == StatedWindow(window=8192, endpoint=f"http://[::1]:{server.port}", path="/props")
    assert by_name == StatedWindow(window=8192, endpoint=f"http://localhost:{server.port}", path="/props")


# --- what goes wrong --------------------------------------------------------------------------------------


async def test_no_server_states_nothing() -> None:
    async with serving({}) as server:
        empty = await stated_window(server.url(), "m", LONG_S)

    assert empty is None
    assert await stated_window(server.url(), "m", LONG_S) is None
    assert await stated_window("http://192.0.2.1:8080/v1", "m", LONG_S) is None
    assert await stated_window(server.url(), "", LONG_S) is None


HTML = b"<!doctype html><html><body>max_model_len: 4096</body></html>"
CARD = b'{"data":[{"id":"m","max_model_len":4096}]}'


@pytest.mark.parametrize(
    "answer",
    [
        ok(HTML, "Content-Type: text/html"),
        ok(b""),
        ok(b"null"),
        ok(b"[1, 2]"),
        ok(b'"text"'),
        ok(b"\xff\xfe\x00"),
        ok(b"[" * 100_000),
        ok(b'{"data":' * 20_000),
        ok(CARD[:-3]),
        ok(b'{"data":{"id":"m","max_model_len":4096}}'),
        ok(b'{"data":["m",4096,null]}'),
        ok(gzip.compress(CARD), "Content-Encoding: gzip"),
        CARD,
        b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + CARD,
        b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n" + CARD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + CARD,
        b"HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n" % len(CARD) + CARD,
        b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n" % len(CARD) + CARD,
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
    ],
)
async def test_whatever_else_a_server_sends_is_no_statement(answer) -> None:
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    assert await stated({"/v1/models": send}, "m") is None


async def test_the_same_body_in_one_piece_is_a_statement() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
        len(CARD),
        CARD,
    )

    assert await stated({"/v1/models": ok(CARD)}, "m") == (4096, "/v1/models")
    assert await stated({"/v1/models": chunked}, "m") == (4096, "/v1/models")


@pytest.mark.parametrize(
    ("number", "window"),
    [
        (0, None),
        (-4096, None),
        (255, None),
        (256, 256),
        (100_000_000, 100_000_000),
        (100_000_001, None),
        (1e300, None),
        (4096.5, None),
        (4096.0, 4096),
        ("8192", 8192),
        ("nan", None),
        ("inf", None),
        ("many", None),
        (True, None),
        (None, None),
        ([4096], None),
        ({"n": 4096}, None),
    ],
)
async def test_a_number_counts_only_where_it_can_be_a_window(number, window) -> None:
    card = {"id": "m", "max_model_len": number}

    seen = await stated({"/v1/models": {"data": [card]}}, "m")

    assert seen == (None if window is None else (window, "/v1/models"))


async def test_a_redirect_is_not_followed() -> None:
    async with serving({"/v1/models": {"data": [{"id": "m", "max_model_len": 4096}]}}) as elsewhere:
        location = elsewhere.url("/v1/models")
        moved = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
        found = await stated({"/v1/models": moved, "/props": moved}, "m")

    assert (found, elsewhere.asked) == (None, [])


async def test_a_body_above_the_limit_is_not_read_to_its_end() -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b'HTTP/1.1 200 OK\r\n\r\n{"data":[{"id":"m","max_model_len":4096}],"more":"')
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()
            sent += 65_536

    padded = CARD[:-1] + b',"more":"' + b"x" * (BODY_BYTES - len(CARD) - 10) + b'"}'

    assert await stated({"/v1/models": endless}, "m") is None
    assert sent < 16 * BODY_BYTES
    assert len(padded) == BODY_BYTES
    assert await stated({"/v1/models": ok(padded)}, "m") == (4096, "/v1/models")
    assert await stated({"/v1/models": ok(padded + b" ")}, "m") is None


async def never(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_the_deadline_is_one_for_all_and_what_came_before_it_counts() -> None:
    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(100_000):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0)
        await never(writer)

    paths = ("/v1/models", "/props", "/api/ps", "/api/v0/models", "/api/v1/models", "/info")
    begin = time.monotonic()
    silent = await stated(dict.fromkeys(paths, never), "m", deadline_s=SHORT_S)
    slow = await stated({"/info": dripping, "/props": never}, "m", deadline_s=SHORT_S)
    half = await stated({**dict.fromkeys(paths, never), "/info": TGI}, "m", deadline_s=SHORT_S)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        none = await stated_window(f"http://127.0.0.1:{deaf.getsockname()[1]}", "m", 0)

    assert (silent, slow, half, none) == (None, None, (4096, "/info"), None)
    assert time.monotonic() - begin < 30, "no server was waited for"


async def test_cancelling_the_question_ends_it_and_closes_its_connections() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()
    open_connections = 0

    async def watch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_connections
        open_connections += 1
        while await reader.read(4096):
            asked.set()
        writer.close()
        await writer.wait_closed()
        open_connections -= 1
        if not open_connections:
            ended.set()

    async with await asyncio.start_server(watch, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        question = asyncio.create_task(stated_window(f"http://127.0.0.1:{port}", "m", LONG_S))
        await asked.wait()
        ended.clear()
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question
        await asyncio.wait_for(ended.wait(), LONG_S)

    assert open_connections == 0


async def test_an_answered_question_leaves_no_connection_open() -> None:
    async with serving({"/v1/models": VLLM, "/api/ps": OLLAMA_PS, "/info": TGI}) as server:
        found = await stated_window(server.url(), "gemma4", LONG_S)
        await asyncio.wait_for(server.left.wait(), LONG_S)

    assert found is not None
    assert len(server.writers) > 1


PROXIED = """
import asyncio, sys
from compactd.models.providers.local_servers import stated_window
assert "httpx" not in sys.modules and "urllib.parse" not in sys.modules
print(asyncio.run(stated_window(sys.argv[1], "deepseek-r1", 10.0)))
"""


async def test_proxies_of_the_environment_are_not_used_and_nothing_is_loaded_before_it_is_needed() -> None:
    async with serving({}) as proxy, serving({"/v1/models": SGLANG}) as server:
        url = proxy.url("")
        names = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROXIED, server.url(), env={**os.environ, **dict.fromkeys(names, url)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = await child.communicate()

    assert (err, proxy.asked) == (b"", [])
    assert b"window=163840" in out


# --- what is this machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1",
        "http://127.0.0.1:8080/v1",
        "HTTPS://127.255.255.254:8443",
        "http://[::1]:8080/v1",
        "http://[0:0:0:0:0:0:0:1]",
        "http://localhost:11434",
        "http://LocalHost/v1/",
        "http://gpu.box.localhost:1234/v1?x=1#y",
    ],
)
def test_loopback_is_127_and_1_of_ipv6_and_localhost_with_all_below_it(url) -> None:
    assert is_local_server(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "//localhost",
        "ftp://localhost",
        "file:///localhost",
        "unix://localhost",
        "http://",
        "http:///v1",
        "http://localhost.",
        "http://.localhost",
        "http://a..localhost",
        "http://localhost.example.com",
        "http://notlocalhost",
        "http://127.0.0.1.nip.io",
        "http://127.1",
        "http://127.0.0.01",
        "http://0177.0.0.1",
        "http://0x7f.0.0.1",
        "http://2130706433",
        "http://0.0.0.0",
        "http://128.0.0.1",
        "http://126.255.255.255",
        "http://192.168.1.10:8080",
        "http://10.0.0.1",
        "http://[::]",
        "http://[::2]",
        "http://[::1%25lo]",
        "http://[::ffff:127.0.0.1]",
        "http://[127.0.0.1]",
        "http://[localhost]",
        "http://::1",
        "http://[::1].example.com",
        "http://[::1]x:80",
        "http://localhost@example.com",
        "http://example.com@localhost",
        "http://user:secret@127.0.0.1",
        "http://example.com\\@127.0.0.1",
        "http://127.0.0.1\\.example.com",
        "http://localhost\t/v1",
        " http://localhost",
        "http://local\nhost",
        "http://localhost\0.example.com",
        "http://localhost:0",
        "http://localhost:99999",
        "http://localhost:-1",
        "http://localhost:080",
        "http://localhost:http",
        "http://１２７.0.0.1",
        "http://ⓛocalhost",
        "http://%6cocalhost",
        "http://localhost%2eexample.com",
        "http://localhost/v1/é",
    ],
)
def test_all_that_is_odd_is_not_this_machine(url) -> None:
    assert not is_local_server(url)


@given(st.text(max_size=40), st.text(max_size=20))
@example("[", "")
@example("[::1", "]")
@example("localhost:８０", "")
def test_any_text_is_loopback_or_not_and_never_an_error(host, path) -> None:
    assert is_local_server(f"http://{host}/{path}") in (True, False)
    assert is_local_server(host) in (True, False)


@given(st.ip_addresses())
def test_an_address_is_loopback_as_the_standard_has_it(address) -> None:
    host = f"[{address}]" if address.version == 6 else str(address)

    assert is_local_server(f"http://{host}:8080/v1") == (
        address.is_loopback and getattr(address, "ipv4_mapped", None) is None
    )
