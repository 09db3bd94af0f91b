"""`compactd classify`: reads a provider's error from a file or stdin and prints a verdict as text or JSON."""

from __future__ import annotations

import json
import subprocess

import pytest

from compactd.cli.commands.classify import decode
from tests.support.command_line import ANSI, COMPACTD, TERMINAL, TIMEOUT_S, Ended, environment, run, run_each

# 400, Messages API, seen 2026-03.
TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"
ANTHROPIC = json.dumps(
    {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}
).encode()
PACE = b'{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 6s."}}'


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def fed(home, body: bytes, *arguments: str) -> Ended:
    """Runs `compactd classify ARGUMENTS...` with `body` on its standard input."""
    done = subprocess.run(
        [*COMPACTD, "classify", *arguments],
        input=body,
        capture_output=True,
        env=environment(home),
        cwd=home,
        timeout=TIMEOUT_S,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def rows(ended: Ended) -> dict[str, str]:
    """Return the text after each label."""
    return {line[:10].strip(): line[10:].strip() for line in ended.lines}


def test_an_overflow_is_told_with_its_numbers_the_fix_and_what_decided(home) -> None:
    seen = fed(home, ANTHROPIC, "--status", "400", "--provider", "anthropic")

    assert (seen.code, seen.err) == (0, "")
    assert seen.lines[:4] == [
        "what      a context overflow: the request is larger than the model's window",
        "limit       200,000   tokens",
        "requested   213,462   tokens, 13,462 above the limit",
        "fix       compact: send a shorter conversation",
    ]
    assert [line[:10] for line in seen.lines[4:]] == ["evidence  "]
    assert seen.lines[4][10:].strip()


def test_json_has_the_same_facts_in_one_object(home) -> None:
    text, data = fed(home, ANTHROPIC), fed(home, ANTHROPIC, "--json").json

    assert set(data) == {"overflow", "kind", "limit", "requested", "fix", "evidence"}
    assert (data["overflow"], data["kind"], data["fix"]) == (True, "overflow", "compact")
    assert (data["limit"], data["requested"]) == (200_000, 213_462)
    assert rows(text)["evidence"] == data["evidence"]


def test_what_is_no_overflow_is_said_to_be_none_and_is_no_failure(home) -> None:
    seen, data = fed(home, PACE, "--status", "429"), fed(home, PACE, "--status", "429", "--json").json

    assert (seen.code, seen.err) == (0, "")
    assert rows(seen)["what"] == "no overflow: a rate limit, too many requests or tokens in a short time"
    assert rows(seen)["fix"] == "wait, then send the same request again"
    assert "limit" not in rows(seen)
    assert (data["overflow"], data["kind"], data["fix"]) == (False, "rate_limit", "retry_later")


def test_where_less_output_makes_the_request_fit_that_is_the_fix(home) -> None:
    body = b"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"

    seen = rows(fed(home, body, "--status", "400"))

    assert seen["what"] == "a context overflow: the input and the requested output together exceed the window"
    assert seen["fix"] == "ask for fewer output tokens: the input alone fits"


def test_a_file_a_dash_and_no_name_read_the_same(home) -> None:
    file = home / "error ünd.json"
    file.write_bytes(ANTHROPIC)

    named, dash, bare = run(home, "classify", file), fed(home, ANTHROPIC, "-"), fed(home, ANTHROPIC)

    assert named == dash == bare
    assert named.code == 0


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\xef\xbb\xbfwindow", "window"),
        ("window".encode("utf-16"), "window"),
        (b"\xff\xfe" + "window".encode("utf-16-le") + b"\0", "window\ufffd"),
        (b"\xfe\xff" + "window".encode("utf-16-be"), "window"),
        ("fenêtre 窗".encode(), "fenêtre 窗"),
        (b"\xff\0win\x80dow\xc3", "\ufffd\0win\ufffddow\ufffd"),
        (b"", ""),
    ],
)
def test_the_bytes_of_a_body_become_text_whatever_they_are(body, text) -> None:
    assert decode(body) == text


@pytest.mark.parametrize(
    "body", [TOO_LONG.encode("utf-16"), b"data: \xff\0" + ANTHROPIC + b"\n\ndata: [DONE]\n"]
)
def test_a_body_is_read_whatever_its_bytes_are(home, body) -> None:
    seen = fed(home, body, "--json").json

    assert (seen["kind"], seen["limit"], seen["requested"]) == ("overflow", 200_000, 213_462)


def test_a_body_of_nothing_but_bytes_is_classified_too(home) -> None:
    seen = fed(home, bytes(range(256)) * 40, "--status", "500", "--json")

    assert (seen.code, seen.json["overflow"], seen.json["kind"]) == (0, False, "server")


def test_a_body_above_the_frame_limit_is_cut_to_its_ends_and_that_is_said(home) -> None:
    # As JSON each of these characters takes six bytes: 270 MB.
    body = b"\x01" * 45_000_000 + ANTHROPIC

    seen = fed(home, body, "--status", "400")

    assert (seen.code, rows(seen)["limit"]) == (0, "200,000   tokens")
    assert seen.err == (
        f"note: of {len(body):,} characters, only the first and the last 1,000,000 were read\n"
    )


def test_a_body_above_50_mb_is_refused(home) -> None:
    file = home / "huge"
    with file.open("wb") as huge:
        huge.truncate(50_000_001)

    seen = run(home, "classify", file)

    assert (seen.code, seen.out) == (1, "")
    assert seen.err.startswith(f"{file} is larger than 50,000,000 bytes, ")


def test_without_a_body_what_is_known_beside_it_decides(home) -> None:
    status, usage, pace, profile = run_each(
        home,
        ("classify", "--status", "401", "--json"),
        ("classify", "--status", "400", "--used", "210k", "--window", "200k", "--json"),
        ("classify", "--code", "rate_limit_exceeded", "--json"),
        ("classify", "--status", "413", "--profile", "klaude", "--json"),
    )

    assert [one.code for one in (status, usage, pace, profile)] == [0, 0, 0, 0]
    assert status.json["kind"] == "auth"
    assert (usage.json["kind"], usage.json["limit"]) == ("overflow", 200_000)
    assert pace.json["kind"] == "rate_limit"
    # klaude takes a refusal without a body for an overflow.
    assert (profile.json["kind"], profile.json["fix"]) == ("overflow", "compact")


def test_an_overflow_that_names_no_limit_says_so(home) -> None:
    seen = fed(home, b"", "--status", "413", "--profile", "klaude")

    assert (rows(seen)["limit"], "requested" in rows(seen)) == ("not named in the error", False)


def test_an_empty_body_is_refused_like_any_empty_file(home) -> None:
    empty, blank, used = fed(home, b""), fed(home, b" \n\n"), fed(home, b"", "--used", "5")
    as_json = fed(home, b"", "--json")

    assert [one.code for one in (empty, blank, used, as_json)] == [1, 1, 1, 1]
    assert empty.err.splitlines()[0] == "- is empty: there is nothing to classify."
    assert as_json.json["error"]["message"] == "- is empty: there is nothing to classify."


def test_a_status_is_asked_for_where_the_body_alone_decides_nothing(home) -> None:
    alone, known = fed(home, b"It did not work."), fed(home, b"It did not work.", "--status", "500")

    assert (alone.code, alone.err) == (
        3,
        "note: with --status N (the HTTP status) the answer may be more exact\n",
    )
    assert rows(alone)["what"] == "unknown: neither the text nor the numbers show an overflow"
    assert rows(alone)["fix"] == "not known"
    assert (known.code, known.err) == (0, "")


def test_what_cannot_be_asked_is_a_wrong_command_line(home) -> None:
    seen = run_each(
        home,
        ("classify", home / "missing"),
        ("classify", home),
        ("classify", "--status", "99"),
        ("classify", "--status", "4xx"),
        ("classify", "--window", "0"),
        ("classify", "--used", "many"),
        ("classify", "--profile", "nobody"),
        ("classify", "one", "two"),
    )

    assert [(one.code, one.out) for one in seen] == [(2, "")] * len(seen)
    assert all("Traceback" not in one.err and len(one.err.splitlines()) <= 2 for one in seen)
    assert seen[0].err == f"cannot read {home / 'missing'}: there is no such file.\n"
    assert seen[1].err.startswith(f"cannot read {home}: it is a folder.\n")


def test_a_terminal_shows_the_same_words_and_an_overflow_in_red(home) -> None:
    file, pace = home / "error.json", home / "pace.json"
    file.write_bytes(ANTHROPIC)
    pace.write_bytes(PACE)

    terminal, pipe = run(home, "classify", file, env=TERMINAL), run(home, "classify", file)
    calm = run(home, "classify", pace, env=TERMINAL)

    assert terminal.words == pipe.words
    assert terminal.out.startswith("\x1b[31mwhat ")
    assert "\x1b[" not in calm.out
    assert max(len(ANSI.sub("", line)) for line in terminal.lines) <= 80


def test_what_a_body_holds_cannot_command_the_terminal(home) -> None:
    seen = fed(home, b"\x1b]0;owned\x07\x1b[31m" + ANTHROPIC)

    assert seen.code == 0
    assert "\x1b" not in seen.out
