"""Answers that a provider or a gateway compressed: one layer is read within bounds, a bomb is refused."""

from __future__ import annotations

import asyncio
import gzip
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compactd.models.limits import ProviderLimits
from compactd.models.providers.http import ConnectionBroken, ConnectionPool, HttpRequest
from tests.support.client import Daemon
from tests.support.loopback import Answer, Fail, Loopback, Packed
from tests.support.own_loop import MODELS, Talk, environment

MIB = 1024 * 1024
BOMB_MIB = 1024
"""The size of the bomb when all its layers are unpacked at once."""

PEAK_MIB = 500
"""Most memory of the whole daemon: far below the bomb, far above what a turn takes."""


GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
"""The header of a file without a name and a time (RFC 1952)."""


@cache
def zeros(mib: int) -> bytes:
    """Return `mib` MiB of zeros, compressed once: one gzip member, of one compressed MiB that is repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    piece = bytes(MIB)
    block = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(mib):
        checksum = zlib.crc32(piece, checksum)
    trailer = struct.pack("<II", checksum, mib * MIB)
    return GZIP_HEADER + block * mib + packer.flush() + trailer


@cache
def bomb() -> bytes:
    """1.8 kB that two layers of gzip turn into `BOMB_MIB`."""
    return gzip.compress(gzip.compress(zeros(BOMB_MIB)))


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def peak_mib(daemon: Daemon) -> int:
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def asked_once(server: Loopback, folder: Path) -> dict[str, Any]:
    """Run a turn with a model at `server`. Return how it ended."""
    with Daemon(folder / "home", env=environment("anthropic", server.base_url)) as daemon:
        session = daemon.call("session/start", model=MODELS["anthropic"])["session_id"]
        return Talk(daemon, session).ask("Hello")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda: Packed(bomb(), "gzip, gzip, gzip"), "compressed more than once"),
        (lambda: Packed(gzip.compress(zeros(BOMB_MIB)), "gzip, gzip"), "compressed more than once"),
        (lambda: Packed(gzip.compress(zeros(BOMB_MIB)), "gzip, gzip", status=400), "400"),
        (lambda: Packed(zeros(BOMB_MIB), "gzip"), "too long"),
        (lambda: Packed(zeros(BOMB_MIB), "x-gzip", status=400), "answered 400"),
        (lambda: Packed(zeros(BOMB_MIB), "br"), "did not ask for"),
    ],
    ids=["three-layers", "two-layers", "two-layers-of-an-error", "one-layer", "one-of-an-error", "brotli"],
)
def test_a_packed_bomb_takes_no_memory_and_the_other_sessions_go_on(
    step: Callable[[], Packed], words: str, tmp_path: Path
) -> None:
    with Loopback((step(),)) as hostile, Loopback(then=Answer(text="fine")) as other:
        env = {**environment("anthropic", hostile.base_url), **environment("openai", other.base_url)}
        with Daemon(tmp_path / "home", env=env) as daemon:
            names = [
                daemon.call("session/start", model=MODELS[w])["session_id"] for w in ("anthropic", "openai")
            ]
            attacked, beside = (Talk(daemon, name) for name in names)

            turn = attacked.prompt("Hello")
            answered = daemon.call("daemon/info")["version"]
            went_on = beside.ask("Hello")
            end = attacked.end(turn)

            assert (end["type"], words in end["message"]) == ("error", True), end
            assert (bool(answered), went_on["type"]) == (True, "agent_end")
            assert peak_mib(daemon) < PEAK_MIB
            # The session itself goes on as well: the next answer is an honest one.
            assert attacked.ask("And now?")["type"] == "agent_end"


def test_an_errors_body_that_is_refused_is_named_beside_its_status(tmp_path: Path) -> None:
    body = gzip.compress(gzip.compress(b'{"error":{"message":"prompt is too long"}}'))
    with Loopback((Packed(body, "gzip, gzip", status=400),)) as server:
        end = asked_once(server, tmp_path)

    assert "answered 400: it sent a body that is compressed more than once" in end["message"]


@pytest.mark.parametrize(
    ("pack", "encoding"),
    [
        (gzip.compress, "gzip"),
        (gzip.compress, "X-GZip"),
        (gzip.compress, "identity, gzip"),
        (zlib.compress, "deflate"),
        (raw_deflate, "deflate"),
        (bytes, "identity"),
    ],
    ids=["gzip", "other-name", "with-identity", "deflate", "deflate-without-its-head", "none"],
)
def test_one_layer_of_compression_is_read(
    pack: Callable[[bytes], bytes], encoding: str, tmp_path: Path
) -> None:
    refusal = b'{"type":"error","error":{"type":"invalid_request_error","message":"no such model here"}}'
    with Loopback((Packed(pack(refusal), encoding, status=404),)) as server:
        end = asked_once(server, tmp_path)

    assert (end["type"], "no such model here" in end["message"]) == ("error", True), end


async def received(server: Loopback, limits: ProviderLimits) -> tuple[bytes, str, int]:
    """(what came, why it broke off, how often others had their turn meanwhile)."""
    links, turns = ConnectionPool({}, limits), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    body, why = b"", ""
    sending = HttpRequest(url=f"{server.base_url}/v1/messages", headers={}, body=b"{}")
    try:
        async with links.send(sending) as answer:
            task = asyncio.create_task(others())
            try:
                async for piece in answer.chunks():
                    body += piece if len(body) < MIB else b""
            except ConnectionBroken as broken:
                why = broken.sentence
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    finally:
        await links.close()
    return body, why, turns


async def test_unpacking_stops_at_the_limit_and_gives_way_to_others_at_each_step() -> None:
    with Loopback((Packed(zeros(BOMB_MIB), "gzip"),)) as server:
        _, why, turns = await received(server, ProviderLimits(body_bytes=32 * MIB))

    assert why == f"sent more than {32 * MIB} bytes"
    assert turns >= 32 * MIB // 65_536


async def test_what_is_unpacked_is_the_same_to_the_byte() -> None:
    text = b"".join(b"%d words that hardly repeat\n" % (number * 7919) for number in range(30_000))
    with Loopback((Packed(gzip.compress(text), "gzip"), Packed(text, ""))) as server:
        packed, _, _ = await received(server, ProviderLimits())
        plain, _, _ = await received(server, ProviderLimits())

    assert (packed, plain) == (text, text)


async def test_a_body_that_is_not_what_its_head_says_is_refused() -> None:
    with Loopback((Packed(b"no gzip at all", "gzip"), Packed(b"\xff\xff\xff\xff", "deflate"))) as server:
        told = [await received(server, ProviderLimits()) for _ in range(2)]

    assert [why for _, why, _ in told] == ["sent a compressed body that is damaged"] * 2


async def test_a_gateways_odd_name_of_an_encoding_is_not_repeated() -> None:
    odd = "x" * 40 + "<system>"
    with Loopback((Fail(status=200, body="{}", headers={"Content-Encoding": odd}),)) as server:
        _, why, _ = await received(server, ProviderLimits())

    assert (odd[:10] in why, "did not ask for" in why) == (False, True)
