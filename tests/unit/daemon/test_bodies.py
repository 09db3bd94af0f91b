from __future__ import annotations

import gc
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct

from compactd.daemon.rpc.envelope import Envelope, read_envelope
from compactd.daemon.rpc.framing import Fault
from compactd.daemon.rpc.json_depth import DEPTH_LIMIT
from compactd.daemon.rpc.params import ParamsReader
from compactd.daemon.rpc.surrogates import encode_detail, without_lone_surrogates
from compactd.protocol.errors import InvalidParams

# --- one body ---------------------------------------------------------------------------------------


def params_of(body: bytes) -> bytes:
    """The params of a body that is a request, as they are handed on."""
    envelope = read_envelope(body)
    assert isinstance(envelope, Envelope), envelope
    assert envelope.params is not UNSET
    return bytes(envelope.params)


def rejection(body: bytes) -> tuple[int, bytes]:
    """The code and id of the answer to a body that is no message."""
    rejected = read_envelope(body)
    assert isinstance(rejected, Fault), rejected
    return rejected.code, rejected.id


def test_params_are_handed_on_byte_for_byte() -> None:
    params = b'{ "a" : 1.50, "b":1E400,"c":12345678901234567890123, "d":"\\u00e9\\/" , "a":2}'

    assert params_of(b'{"jsonrpc":"2.0","id":1,"method":"x","params":%b}' % params) == params


@pytest.mark.parametrize(
    "id", [b"1", b"-1", b"1.0", b"1e3", b"12345678901234567890123", b'"a\\u0041"', b'""', b"null"]
)
def test_an_id_is_kept_exactly_as_it_came(id: bytes) -> None:
    envelope = read_envelope(b'{"jsonrpc":"2.0","id":%b,"method":"x"}' % id)

    assert isinstance(envelope, Envelope)
    assert bytes(envelope.id) == id


def test_a_message_quoted_in_params_is_no_message() -> None:
    params = b'{"text":{"jsonrpc":"1.0","id":9,"method":5,"error":null}}'

    assert params_of(b'{"jsonrpc":"2.0","id":1,"method":"x","params":%b}' % params) == params


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b"", -32700, b"null"),
        (b"{", -32700, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x"}}', -32700, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', -32700, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":-Infinity}}', -32700, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":01}}', -32700, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xff"}}', -32700, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xc3(","params":{}}', -32700, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xed\xa0\xbd"}}', -32700, b"null"),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"'
            + b"\xc3\xa9" * (1 << 19)
            + b"\xc3"
            + b'"}}',
            -32700,
            b"null",
        ),
        (b"[]", -32600, b"null"),
        (b' [{"jsonrpc":"2.0","id":1,"method":"x"}]', -32600, b"null"),
        (b"5", -32600, b"null"),
        (b'"x"', -32600, b"null"),
        (b"null", -32600, b"null"),
        (b"{}", -32600, b"null"),
        (b'{"id":1,"method":"x"}', -32600, b"1"),
        (b'{"jsonrpc":"1.0","id":"a","method":"x"}', -32600, b'"a"'),
        (b'{"jsonrpc":2.0,"id":1.5,"method":"x"}', -32600, b"1.5"),
        (b'{"jsonrpc":"2.0","id":1}', -32600, b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', -32600, b"1"),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, b"null"),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"x"}', -32600, b"null"),
        (b'{"jsonrpc":"2.0","id":[1],"method":5}', -32600, b"null"),
        (b'{"jsonrpc":"2.0","id":4,"method":"x","params":' + b"[" * 5000 + b"]" * 5000 + b"}", 1009, b"4"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, 1009, b"null"),
    ],
)
def test_what_is_no_message_is_told_so(body: bytes, code: int, id: bytes) -> None:
    assert rejection(body) == (code, id)


def nested(levels: int, between: bytes = b"") -> bytes:
    """A request with a body of so many levels in all."""
    arrays = levels - 1
    return (
        b'{"jsonrpc":"2.0","id":4,"method":"x","params":'
        + (b"[" + between) * (arrays - 1)
        + b"["
        + b"]" * arrays
        + b"}"
    )


@pytest.mark.parametrize("between", [b"", b'"]}",', b'"[[{",', b'"\\"[",', b'{"a":1},'])
def test_nesting_has_the_same_limit_under_every_python(between: bytes) -> None:
    assert isinstance(read_envelope(nested(DEPTH_LIMIT, between)), Envelope)
    if between != b'"]}",':  # closing brackets in strings hide a level each: then msgspec's own limit holds
        assert rejection(nested(DEPTH_LIMIT + 1, between)) == (1009, b"4")


@pytest.mark.parametrize("text", [b"[" * 5000, b"{" * 5000 + rb"\"" + b"[" * 5000, b"[" * 600 + b"}" * 700])
def test_brackets_in_a_string_are_no_nesting(text: bytes) -> None:
    body = b'{"jsonrpc":"2.0","id":4,"method":"x","params":"%b"}' % text

    assert isinstance(read_envelope(body), Envelope)


def test_a_bom_before_a_body_is_passed_over() -> None:
    assert params_of(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"x","params":{}}') == b"{}"


def test_valid_utf8_over_many_megabytes_is_accepted() -> None:
    text = ("é😀" * (1 << 18)).encode()

    assert len(params_of(b'{"jsonrpc":"2.0","id":1,"method":"x","params":"a%b"}' % text)) == len(text) + 3


# --- lone surrogates --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "seen"),
    [
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\uDE00 \uD83D"', rb'"\ufffd \ufffd"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ud83d\ude00\ude00"', rb'"\ud83d\ude00\ufffd"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (rb'{"a\ud83d":1.50, "b" : 1e400, "c":"\\ud83d"}', rb'{"a\ufffd":1.50, "b" : 1e400, "c":"\\ud83d"}'),
    ],
)
def test_a_lone_surrogate_becomes_fffd_and_all_else_stays_byte_for_byte(given_: bytes, seen: bytes) -> None:
    assert without_lone_surrogates(given_) == seen
    assert params_of(b'{"jsonrpc":"2.0","id":1,"method":"x","params":%b}' % given_) == seen


@pytest.mark.parametrize(
    "text", [rb'"\ud83d\ude00"', rb'"\\ud83d"', rb'"\\\\ud83d"', b'"plain"', rb'"\ud83"']
)
def test_where_there_is_no_lone_surrogate_nothing_is_rewritten(text: bytes) -> None:
    assert without_lone_surrogates(text) is None


ANY_TEXT = st.text(st.one_of(st.characters(codec=None), st.sampled_from("\\u\ud83d\ude00d8")), max_size=12)


@given(ANY_TEXT)
def test_every_text_is_read_as_python_reads_it_but_for_its_lone_surrogates(text: str) -> None:
    written = json.dumps(text).encode()

    mended = without_lone_surrogates(written) or written

    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert msgspec.json.decode(mended) == expected


@given(st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3))
def test_data_of_an_error_can_always_be_sent(data: dict[str, str]) -> None:
    assert isinstance(msgspec.json.decode(encode_detail(data)), dict)


# --- params -----------------------------------------------------------------------------------------


class Inner(Struct, frozen=True, kw_only=True):
    name: str
    times: int = 1


class Tagged(Struct, frozen=True, kw_only=True, tag="tagged"):
    size: int = 2
    raw: Raw = Raw(b"{}")


class Other(Struct, frozen=True, kw_only=True, tag="other"):
    size: float = 3.0


class Params(Struct, frozen=True, kw_only=True):
    session_id: str
    first: str | None = msgspec.field(name="from", default=None)
    count: int = 5
    maybe: int | None = 7
    inner: Inner | str = "none"
    inners: tuple[Inner, ...] = ()
    table: dict[str, Inner] = {}
    choice: Tagged | Other | None = None
    data: Raw = Raw(b"{}")


READER = ParamsReader("test/params", Params)


def read(raw: bytes) -> Params:
    """The params, compared as the method knows them."""
    params = READER.read(Raw(raw))
    return Params(**{name: getattr(params, name) for name in Params.__struct_fields__})


def test_params_are_an_instance_of_what_the_method_asks_for() -> None:
    assert isinstance(READER.read(Raw(b'{"session_id":"s"}')), Params)
    assert read(b'{"session_id":"s","from":"e1"}') == Params(session_id="s", first="e1")


@pytest.mark.parametrize("raw", [UNSET, Raw(b"null"), Raw(b"{}")])
def test_params_that_are_left_out_are_empty_ones(raw) -> None:
    with pytest.raises(InvalidParams) as seen:
        READER.read(raw)

    assert seen.value.data == {"path": "$.session_id"}


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        (b"[]", "$", "Expected `object`, got `array` - at `$`"),
        (b'"x"', "$", "Expected `object`, got `str` - at `$`"),
        (b'{"session_id":5}', "$.session_id", "Expected `str`, got `int` - at `$.session_id`"),
        (b'{"session_id":null}', "$.session_id", "Expected `str`, got `null` - at `$.session_id`"),
        (b'{"session_id":"s","from":5}', "$.from", "Expected `str | null`, got `int` - at `$.from`"),
        (
            b'{"session_id":"s","inners":[{"name":"a"},{}]}',
            "$.inners[1].name",
            "Object missing required field `name` - at `$.inners[1].name`",
        ),
        (
            b'{"session_id":"s","inners":[{"name":"a","times":"b"}]}',
            "$.inners[0].times",
            "Expected `int`, got `str` - at `$.inners[0].times`",
        ),
        (
            b'{"session_id":"s","table":{"x":5}}',
            "$.table[...]",
            "Expected `object`, got `int` - at `$.table[...]`",
        ),
        (
            b'{"session_id":"s","choice":{"type":"none"}}',
            "$.choice.type",
            "Invalid value 'none' - at `$.choice.type`",
        ),
        (
            b'{"unknown":1,"session_id":"s","count":"x"}',
            "$.count",
            "Expected `int`, got `str` - at `$.count`",
        ),
    ],
)
def test_params_that_are_wrong_are_refused_with_their_path(raw: bytes, path: str, message: str) -> None:
    with pytest.raises(InvalidParams) as seen:
        READER.read(Raw(raw))

    assert (seen.value.data["path"], seen.value.message) == (path, message)


def test_null_for_an_optional_field_is_as_if_it_were_left_out_at_every_depth() -> None:
    raw = b"""{"session_id":"s","count":null,"inner":{"name":"a","times":null},
        "inners":[{"name":"b","times":null}],"table":{"k":{"name":"c","times":null}},
        "choice":{"type":"tagged","size":null,"raw":{"x": null}},"unknown":null}"""

    assert read(raw) == Params(
        session_id="s",
        inner=Inner(name="a"),
        inners=(Inner(name="b"),),
        table={"k": Inner(name="c")},
        choice=Tagged(raw=Raw(b'{"x": null}')),
    )


def test_null_where_null_has_a_meaning_stays_null() -> None:
    assert read(b'{"session_id":"s","count":null,"maybe":null}') == Params(session_id="s", maybe=None)


@pytest.mark.parametrize("beside", [b'"count":1', b'"count":null'])
def test_a_users_own_null_stays_as_it_came(beside: bytes) -> None:
    params = read(b'{"session_id":"s",%b,"data":{ "a":null, "b":1.0 }}' % beside)

    assert bytes(params.data) == b'{ "a":null, "b":1.0 }'
    assert bytes(read(b'{"session_id":"s",%b,"data":null}' % beside).data) == b"null"


def test_an_unknown_field_is_ignored_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reader = ParamsReader("test/other", Inner)

    for _ in range(3):
        params = reader.read(Raw(b'{"name":"a","nmae":1,"workDoneToken":5,"partialResultToken":"x"}'))
        assert params.times == 1

    assert caplog.messages == ["test/other: the field 'nmae' is not known and was ignored"]


def test_a_client_that_makes_names_up_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    reader = ParamsReader("test/other", Inner)

    for number in range(1000):
        reader.read(Raw(b'{"name":"a","f%d":1}' % number))

    assert len(caplog.messages) == 64


@pytest.mark.parametrize("params", [b'{"text":5}', b'{"text":5,"inner":null}', b'{"text":5,"new":null}'])
def test_params_that_were_refused_are_held_by_nobody_behind_it(params: bytes) -> None:
    def errors() -> set[int]:
        return {id(one) for one in gc.get_objects() if isinstance(one, msgspec.ValidationError)}

    gc.collect()
    gc.disable()
    try:
        before = errors()

        with pytest.raises(InvalidParams):
            READER.read(Raw(params))

        assert not errors() - before
    finally:
        gc.enable()
