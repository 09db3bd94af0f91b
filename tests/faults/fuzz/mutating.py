"""Mutates real bytes at random: flips, cuts, doubles and splices them, and inserts what parsers fear."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

FEARED = (
    b"\0",
    b"\n",
    b"\r\n\r\n",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b'"\\ud800"',
    b"[" * 2_000,
    b'{"a":' * 1_200,
    b"1e999",
    b"-0",
    b"9" * 400,
    b"NaN",
    b"null",
    b"true",
    b'""',
    b"{}",
    b"[]",
    b'"type":"message"',
    b',"crc":"00000000"}',
    b'{"seq":0,',
    b'"nl":[',
    b'"nl":[-1,9999999999],',
    b'"with":',
    b'"with":x,',
    b"Content-Length: 99999999999999999999\r\n\r\n",
    b"Content-Length: -1\r\n\r\n",
)
MOST_BYTES = 60_000


def mutated(seeds: Sequence[bytes], dice: Random) -> bytes:
    """Return one of `seeds` with one to six random changes."""
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.randrange(1, 7)):
        _change(data, seeds, dice)
        del data[MOST_BYTES:]
    return bytes(data)


def _change(data: bytearray, seeds: Sequence[bytes], dice: Random) -> None:
    at = dice.randrange(len(data) + 1)
    stop = min(len(data), at + dice.choice((1, 2, 8, 64, 1_000)))
    match dice.randrange(8):
        case 0 if at < len(data):
            data[at] ^= 1 << dice.randrange(8)
        case 1:
            del data[at:stop]
        case 2:
            data[at:at] = data[at:stop] * dice.randrange(1, 4)
        case 3:
            data[at:at] = dice.choice(FEARED)
        case 4:
            data[at:stop] = dice.choice(FEARED)
        case 5:
            other = dice.choice(seeds)
            start = dice.randrange(len(other) + 1)
            data[at:stop] = other[start : start + dice.choice((8, 64, 1_000))]
        case 6:
            del data[at:]
        case _:
            data[at:stop] = dice.randbytes(stop - at)
