"""HTTP connections to providers: reuse, closing, no leaks; proxies and TLS certificates."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import ssl
import subprocess
import sys
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.structs import replace

from compactd.models.providers.http import ConnectionBroken, HttpRequest
from compactd.models.providers.network import (
    Address,
    address_of,
    is_local_host,
    proxy_for,
    trusted_certificates,
)
from compactd.models.providers.provider import Finished
from tests.support.loopback import Answer, Cut, Endless, Hangup, Html, Loopback, Seen, Silence, Stall, Wire
from tests.support.loopback.server import CERTIFICATE
from tests.unit.models.asking_loopback import QUICK, WIRES, hear, linked, provider_of, request_of

EVERY_WIRE = pytest.mark.parametrize("wire", WIRES)


async def arrived(server: Loopback, number: int) -> Seen:
    """Wait until the server has the `number`-th request. Return it."""
    async with asyncio.timeout(5):
        while len(server.requests) < number:
            await asyncio.sleep(0)
    return server.requests[number - 1]


# --- one after the other ----------------------------------------------------------------------------------


@EVERY_WIRE
async def test_requests_one_after_the_other_share_a_connection(wire: Wire) -> None:
    with Loopback() as server:
        async with linked() as links:
            provider = provider_of(server, wire, links)
            heard = [await hear(provider, request_of(wire)) for _ in range(4)]

            assert [each.text for each in heard] == ["ok"] * 4
            assert server.connections == 1
            assert (links.lent, links.idle) == (0, 1)


async def test_requests_side_by_side_do_not_wait_for_each_other() -> None:
    with Loopback([Stall("a"), Stall("b"), Stall("c"), Answer(text="d")]) as server:
        async with linked() as links:
            provider = provider_of(server, "openai", links)
            stalled = []
            for number in range(1, 4):
                stalled.append(asyncio.create_task(hear(provider, request_of("openai"))))
                await arrived(server, number)
            fourth = await hear(provider, request_of("openai"))
            for task in stalled:
                task.cancel()
            await asyncio.gather(*stalled, return_exceptions=True)

            assert fourth.text == "d"
            assert server.connections == 4


@EVERY_WIRE
async def test_a_connection_whose_answer_ended_too_early_is_not_used_again(wire: Wire) -> None:
    """The server closes such a connection, so a request that is sent on it next may never arrive."""
    with Loopback([Cut(Answer(text="fine"), 3, clean=True)]) as server:
        async with linked() as links:
            provider = provider_of(server, wire, links)
            broken = await hear(provider, request_of(wire))
            idle = links.idle
            heard = await hear(provider, request_of(wire))

    assert broken.failure.failure.cause == "stream"
    assert (idle, server.connections) == (0, 2)
    assert heard.text == "ok"


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again() -> None:
    async with linked() as links:
        with Loopback() as server:
            port = int(server.base_url.rpartition(":")[2])
            provider = provider_of(server, "openai", links)
            await hear(provider, request_of("openai"))
        with Loopback(port=port) as server:
            heard = await hear(provider, request_of("openai"))

    assert heard.text == "ok"


@pytest.mark.parametrize("tls", [False, True])
async def test_requests_that_are_the_first_all_at_once_share_what_takes_long_to_make(tls: bool) -> None:
    with Loopback(then=Stall("so far"), tls=tls) as server:
        async with linked(environ={"SSL_CERT_FILE": str(CERTIFICATE)}) as links:
            provider = provider_of(server, "openai", links)
            before = contexts()
            tasks = [asyncio.create_task(hear(provider, request_of("openai"))) for _ in range(12)]
            await arrived(server, 12)
            made = contexts() - before
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

            assert (made, server.connections, links.lent) == (1, 12, 0)


async def test_the_first_request_may_be_cancelled_and_those_that_waited_with_it_are_answered() -> None:
    with Loopback() as server:
        async with linked() as links:
            provider = provider_of(server, "openai", links)
            first, *others = [asyncio.create_task(hear(provider, request_of("openai"))) for _ in range(4)]
            for _ in range(3):
                await asyncio.sleep(0)
            first.cancel()
            heard = await asyncio.gather(*others)

            assert [each.text for each in heard] == ["ok"] * 3
            assert first.cancelled()
            assert links.lent == 0


async def test_certificates_that_are_mended_are_believed_at_the_next_request(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with Loopback(tls=True) as server:
        async with linked(environ={"SSL_CERT_FILE": str(file)}) as links:
            provider = provider_of(server, "openai", links)
            failed = await asyncio.gather(*[hear(provider, request_of("openai")) for _ in range(3)])
            file.write_bytes(CERTIFICATE.read_bytes())
            heard = await hear(provider, request_of("openai"))

    assert ["SSL_CERT_FILE" in each.failure.message for each in failed] == [True] * 3
    assert heard.text == "ok"


def contexts() -> int:
    """Return how many TLS contexts of this process are still alive."""
    gc.collect()
    return sum(isinstance(each, ssl.SSLContext) for each in gc.get_objects())


# --- cancelled --------------------------------------------------------------------------------------------


@EVERY_WIRE
async def test_a_cancelled_stream_frees_its_connection_and_the_server_sees_it_go(wire: Wire) -> None:
    with Loopback([Stall("so far")]) as server:
        async with linked() as links:
            provider = provider_of(server, wire, links)
            task = asyncio.create_task(hear(provider, request_of(wire)))
            seen = await arrived(server, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            assert await asyncio.to_thread(seen.was_left)
            assert links.lent == 0
            assert (await hear(provider, request_of(wire))).text == "ok"


async def test_a_stream_that_is_closed_early_frees_its_connection() -> None:
    with Loopback([Endless()]) as server:
        async with linked() as links:
            provider = provider_of(server, "openai", links)
            async with aclosing(provider.stream(request_of("openai"))) as events:
                async for _ in events:
                    break

            assert await asyncio.to_thread(server.requests[0].was_left)
            assert links.lent == 0


async def test_no_connection_is_lost_by_twenty_streams_that_are_cancelled_twice() -> None:
    # httpx 0.28.1's own pool keeps such connections "active" for ever (httpcore issue 1093).
    with Loopback([Stall("a") if number % 2 else Silence() for number in range(20)]) as server:
        async with linked() as links:
            provider = provider_of(server, "openai", links)
            for number in range(20):
                task = asyncio.create_task(hear(provider, request_of("openai")))
                await arrived(server, number + 1)
                for _ in range(2):
                    task.cancel()
                    await asyncio.sleep(0)
                await asyncio.gather(task, return_exceptions=True)
            for seen in server.requests:
                assert await asyncio.to_thread(seen.was_left)
            heard = await hear(provider, request_of("openai"))

            assert heard.text == "ok"
            assert links.lent == 0


@pytest.mark.parametrize("turns", range(12))
async def test_a_request_that_is_cancelled_at_any_moment_leaves_nothing_behind(turns: int) -> None:
    with Loopback() as server:
        async with linked() as links:
            provider = provider_of(server, "openai", links)
            await hear(provider, request_of("openai"))
            task = asyncio.create_task(hear(provider, request_of("openai")))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

            assert links.lent == 0
            assert (await hear(provider, request_of("openai"))).text == "ok"


FIRST_REQUEST = """
import asyncio, json, sys, threading
from compactd.models.providers.factory import provider_for
from compactd.models.providers.http import ConnectionPool, HttpRequest

on_the_loop, elsewhere = [], []

def hear(event, given):
    if event == "import":
        (on_the_loop if threading.current_thread() is threading.main_thread() else elsewhere).append(given[0])

async def main():
    links = ConnectionPool({})
    asyncio.get_running_loop().run_in_executor(None, int)
    sys.addaudithook(hear)
    async with links.send(HttpRequest(url=sys.argv[1] + "/v1/messages", headers={}, body=b"{}")) as answer:
        await answer.text()
    await links.close()

was_there = "httpx" in sys.modules
asyncio.run(main())
print(json.dumps([was_there, on_the_loop, elsewhere]))
"""


def test_the_first_request_of_a_process_imports_nothing_heavy_on_the_loop() -> None:
    with Loopback() as server:
        command = [sys.executable, "-c", FIRST_REQUEST, server.base_url]
        run = subprocess.run(command, capture_output=True, check=True, timeout=60)
    was_there, on_the_loop, elsewhere = json.loads(run.stdout)

    # httpx and what it brings take 0.1 s: that long nobody would be answered.
    heavy = ("httpx", "httpcore", "anyio", "h11", "ssl", "certifi", "click", "rich")
    assert was_there is False
    assert "httpx" in elsewhere
    assert [name for name in on_the_loop if name.partition(".")[0] in heavy] == []
    assert len(set(on_the_loop)) < 6


async def test_closing_ends_what_is_kept() -> None:
    with Loopback() as server:
        async with linked() as links:
            await hear(provider_of(server, "openai", links), request_of("openai"))
            await links.close()

            assert links.idle == 0


# --- addresses --------------------------------------------------------------------------------------------


async def test_what_is_no_address_is_told() -> None:
    async with linked() as links:
        for url in ("ftp://x/", "x", "http://", "http://a:b/"):
            with pytest.raises(ConnectionBroken) as seen:
                async with links.send(HttpRequest(url=url, headers={}, body=b"")):
                    pass
            assert seen.value.cause == "answer"


def test_a_place_shows_neither_user_nor_password_nor_path() -> None:
    address = address_of("https://me:pass@Gateway.example:8443/v1/secret?token=x")

    assert address is not None
    assert address.place == "https://gateway.example:8443"


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("api.localhost", True),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("10.0.0.1", False),
        ("128.0.0.1", False),
    ],
)
def test_this_machine_is_known_by_its_names(host: str, is_here: bool) -> None:
    assert is_local_host(host) is is_here


HTTPS = Address(scheme="https", host="api.example.com", port=None, path="")


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ({"https_proxy": "p:1"}, "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, None),
        ({"ALL_PROXY": "socks5://p:1"}, "socks5://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other.org, .example.com"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample.com"}, "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
    ],
)
def test_the_environment_names_the_proxy(environ: Mapping[str, str], proxy: str | None) -> None:
    assert proxy_for(HTTPS, environ) == proxy


def test_this_machine_is_never_reached_through_a_proxy() -> None:
    here = Address(scheme="http", host="127.0.0.1", port=1234, path="")

    assert proxy_for(here, {"ALL_PROXY": "http://p:1", "HTTP_PROXY": "http://p:1"}) is None


async def test_a_proxy_is_asked_in_the_providers_place() -> None:
    with Loopback(reply=lambda _: Html()) as proxy:
        async with linked(environ={"HTTP_PROXY": proxy.base_url}) as links:
            url = "http://provider.example/v1/messages"
            async with links.send(HttpRequest(url=url, headers={}, body=b"{}")) as answer:
                assert answer.status == 200
                assert (await answer.text()).startswith("<!DOCTYPE")

    assert proxy.requests[0].path == "http://provider.example/v1/messages"


async def test_a_socks_proxy_without_its_library_is_explained() -> None:
    async with linked(environ={"ALL_PROXY": "socks5://127.0.0.1:9"}) as links:
        with pytest.raises(ConnectionBroken) as seen:
            async with links.send(HttpRequest(url="http://provider.example/", headers={}, body=b"")):
                pass

    assert "socksio" in seen.value.sentence


async def test_certificates_that_are_none_are_explained(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    for file in ("ca.pem", "missing.pem"):
        async with linked(environ={"SSL_CERT_FILE": str(tmp_path / file)}) as links:
            with pytest.raises(ConnectionBroken) as seen:
                async with links.send(HttpRequest(url="https://127.0.0.1:9/", headers={}, body=b"")):
                    pass

        assert "SSL_CERT_FILE" in seen.value.sentence
        assert str(tmp_path) not in seen.value.sentence


async def test_https_is_spoken_where_the_certificate_is_trusted() -> None:
    with Loopback([Answer(text="safe")] * 2, tls=True) as server:
        async with linked(environ={"SSL_CERT_FILE": str(CERTIFICATE)}) as links:
            provider = provider_of(server, "anthropic", links)
            heard = [await hear(provider, request_of("anthropic")) for _ in range(2)]

    assert [each.text for each in heard] == ["safe", "safe"]
    assert server.connections == 1


async def test_a_certificate_that_nobody_trusts_is_told() -> None:
    with Loopback(tls=True) as server:
        async with linked() as links:
            heard = await hear(provider_of(server, "anthropic", links), request_of("anthropic"))

    assert "SSL_CERT_FILE" in heard.failure.message
    assert server.requests == []


async def test_a_cancelled_https_stream_is_closed_too() -> None:
    with Loopback([Stall("so far")], tls=True) as server:
        async with linked(environ={"SSL_CERT_FILE": str(CERTIFICATE)}) as links:
            task = asyncio.create_task(hear(provider_of(server, "openai", links), request_of("openai")))
            seen = await arrived(server, 1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

            assert await asyncio.to_thread(seen.was_left)
            assert links.lent == 0


async def test_who_stops_at_the_last_event_leaves_a_connection_that_can_be_used_again() -> None:
    with Loopback() as server:
        async with linked() as links:
            for wire in WIRES:
                provider = provider_of(server, wire, links)
                async with aclosing(provider.stream(request_of(wire))) as events:
                    async for event in events:
                        if isinstance(event, Finished):
                            break

            assert (links.lent, links.idle, server.connections) == (0, 1, 1)


async def test_a_large_request_arrives_whole() -> None:
    text = "ä" * 400_000
    with Loopback() as server:
        async with linked() as links:
            await hear(provider_of(server, "openai", links), request_of("openai", text))

    assert server.requests[0].body["messages"][0]["content"] == text


def test_the_systems_certificates_and_mozillas_are_believed() -> None:
    assert len(trusted_certificates({}).get_ca_certs()) > 50


# --- secrets ----------------------------------------------------------------------------------------------


async def test_no_log_line_holds_a_key_an_address_or_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = "sk-very-secret-0123456789"
    with Loopback([Answer(text="a word"), Hangup(), Html()]) as server:
        async with linked(replace(QUICK, idle_s=1.0)) as links:
            provider = provider_of(server, "openai", links, environ={"OPENAI_API_KEY": key})
            for _ in range(3):
                await hear(provider, request_of("openai", "a question"))

    logged = "".join(record.getMessage() for record in caplog.records if record.levelno >= logging.DEBUG)
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    assert [text for text in (key, server.base_url, "a word", "a question") if text in logged] == []
