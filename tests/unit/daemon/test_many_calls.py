"""Repeated calls, many calls in one read, and large calls are answered like any other."""

from __future__ import annotations

import pytest

from tests.support.child import notification, request
from tests.support.raw_client import RawClient
from tests.unit.daemon.conftest import Spawn

FRAMINGS = pytest.mark.parametrize("framing", ["headers", "lines"])
MIB = 1 << 20
DEEP = b"[" * 600 + b"]" * 600


def echo(params: bytes, id: bytes = b"1", after: bytes = b"") -> bytes:
    """A call as no encoder would write it."""
    return b'{"jsonrpc":"2.0","id":%b,"method":"test/echo","params":%b%b}' % (id, params, after)


ODD = [
    echo(b'{"text":"plain"}'),
    echo(b'{"text":"plain"}', id=b'"\\u00e9 \\" 7"'),
    echo(b"{}", id=b"-0"),
    echo(b"{}", id=b"1.50e3"),
    echo(b"{}", id=b"null"),
    echo(b"{}", id=b"[1]"),
    echo(b"{}", id=b"true"),
    echo(b"null"),
    echo(b"[]"),
    echo(b'"x"'),
    echo(b'{"times":"x"}'),
    echo(b'{"text":"a","text":"b"}'),
    echo(b'{"text":"\xff"}'),
    echo(b'{"value":"\xff"}'),
    echo(b'{"value":"\xc3\xa9","text":"\xc3\xa9"}'),
    echo(b'{"value":"\\ud83d"}'),
    echo(b'{"value":%b}' % DEEP),
    echo(b'{"value":"%b"}' % DEEP),
    echo(b'{"value": [1,\n 2]}'),
    echo(b"{}", after=b',"params":{"times":2}'),
    echo(b"{}", after=b',"method":"daemon/ping"'),
    echo(b"{}", after=b',"method":"none"'),
    echo(b"{}", after=b',"result":{},"error":{}'),
    echo(b"{}", after=b',"jsonrpc":"1.0"'),
    echo(b"{}", after=b',"extra":1'),
    echo(b"{}", after=b"}"),
    b"\xef\xbb\xbf" + echo(b"{}"),
    b'{"params":{"text":"first"},"method":"test/echo","id":1,"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":1,"method":"test/echo"}',
    b'{"id":1,"method":"test/echo","params":{}}',
    b'{"jsonrpc":"2.0","method":"test/echo","params":{"times":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"rpc.","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"test/none","params":{}}',
    b"[" + echo(b"{}") + b"]",
    # Fields that the method does not know, and nulls.
    echo(b'{"text":null}'),
    echo(b'{"unknown":1}'),
    echo(b'{"unknown":null,"text":null,"times":3}'),
    echo(b'{"text":"plain"}'),
]


def answers(client: RawClient, body: bytes) -> list[bytes]:
    """All that is answered to a body, byte for byte."""
    if client.framing == "lines":
        body = body.replace(b"\n", b" ")
    client.send(body, request("behind", "test/none"))
    seen: list[bytes] = []
    while b'"id":"behind"' not in (answer := client.read_body()):
        seen.append(answer)
    return seen


@FRAMINGS
def test_what_a_call_is_answered_does_not_depend_on_the_calls_before_it(spawn: Spawn, framing: str) -> None:
    odd, seasoned = spawn(framing=framing), spawn(framing=framing)
    odd.call(0, "test/echo", {"unknown": 1})
    wanted = [answers(odd, body) for body in ODD]

    seen = []
    for body in ODD:
        for number in range(3):
            seasoned.call(number, "test/echo", {"text": "plain"})
        seen.append(answers(seasoned, body))

    assert seen == wanted
    assert all(len(each) <= 1 for each in seen)


@FRAMINGS
def test_calls_of_every_kind_in_one_write_are_answered_in_their_order(spawn: Spawn, framing: str) -> None:
    client = spawn(framing=framing)
    kinds = [
        lambda n: request(n, "daemon/ping"),
        lambda n: request(n, "daemon/ping", {}),
        lambda n: request(n, "test/echo", {"text": "x" * (n % 97)}),
        lambda n: request(n, "test/echo", {"text": None}),
        lambda n: request(n, "test/none", {}),
        lambda n: request(n, "test/fail", {"kind": "told"}),
        lambda n: request(n, "test/echo", {"text": "y" * 5000}),
    ]
    bodies = [kinds[n * n % 7](n) for n in range(9000)]
    bodies[5::500] = [notification("daemon/ping", {})] * len(bodies[5::500])

    client.send(*bodies)

    wanted = [n for n in range(9000) if n % 500 != 5]
    assert [client.read()["id"] for _ in wanted] == wanted


@pytest.mark.parametrize(
    ("value", "after", "code"),
    [
        (b'"%b"' % (b"[" * 2 * MIB), b"}", None),
        (b"[%b0]" % (b'{"a":"]"},' * (MIB // 4)), b"}", None),
        (b'"%b"' % (b"\xc3\xa9" * MIB), b"}", None),
        (b'"%b\xff"' % (b"x" * 2 * MIB), b"}", -32700),
        (b'["%b",%b]' % (b"x" * 2 * MIB, DEEP), b"}", 1009),
        (b'"%b"' % (b"x" * 2 * MIB), b"", -32700),
        (b'"%b\\ud83d"' % (b"x" * 2 * MIB), b"}", None),
    ],
)
def test_a_message_of_megabytes_is_looked_at_as_a_small_one_is(
    spawn: Spawn, value: bytes, after: bytes, code: int | None
) -> None:
    client = spawn()
    body = b'{"jsonrpc":"2.0","id":7,"method":"test/echo","params":{"value":%b}%b' % (value, after)

    for _ in range(3):  # the first call of a method, and later ones
        client.send(body)
        answer = client.read()
        assert answer.get("error", {}).get("code") == code
        assert answer["id"] == (None if code == -32700 else 7)
        client.call(1, "test/echo", {"text": "plain"})
