"""API keys go only to their own provider, in a header, and are written nowhere, even if it quotes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compactd.models.providers.secret import BLOT, Secret, blot_keys
from tests.support.client import Daemon
from tests.support.loopback import Answer, Fail, Loopback, Redirect
from tests.support.own_loop import MODELS, QUICK, WIRES, Talk, environment

KEY = "sk-plant/ed+0123456789=ABCDEF"
IN_FILE = "sk-of-the-file/9876543210+x"
"""A key in keys.toml, for a provider of its own."""

SEEN_BEFORE = "sk-plant"
"""The beginning of it: nobody has a use for half a key either."""


def as_it_is(text: str) -> str:
    return text


def slashes_escaped(text: str) -> str:
    """Return `text` with `/` escaped, as PHP's json_encode does."""
    return json.dumps(text)[1:-1].replace("/", "\\/")


def by_numbers(text: str) -> str:
    return "".join(f"\\u{ord(sign):04X}" for sign in text)


def twice(text: str) -> str:
    """JSON in a string of JSON, as gateways wrap another server's error."""
    return json.dumps(slashes_escaped(text))[1:-1]


def in_a_url(text: str) -> str:
    return text.replace("/", "%2F").replace("+", "%2b").replace("=", "%3D")


WRITINGS = (as_it_is, slashes_escaped, by_numbers, twice, in_a_url)


@pytest.mark.parametrize("written", WRITINGS, ids=lambda writing: writing.__name__)
def test_a_key_is_blotted_out_however_it_is_written(written: Callable[[str], str]) -> None:
    text = f'{{"error":{{"message":"no such key: {written(KEY)}."}}}}'

    assert blot_keys(text, (Secret(KEY),)) == f'{{"error":{{"message":"no such key: {BLOT}."}}}}'


def quoting(key: str) -> Fail:
    """A refusal that quotes the key in every way, and in a header too."""
    said = " ".join(written(key) for written in WRITINGS)
    body = '{"error":{"message":"Incorrect API key provided: ' + said + '","type":"invalid_api_key"}}'
    return Fail(status=401, body=body, headers={"x-your-key": key, "content-type": "application/json"})


def everything_of(daemon: Daemon, *folders: Path) -> str:
    """Return all that the daemon sent, logged and wrote to `folders`, and its command line."""
    texts = [got.body for got in daemon.received]
    texts += [path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()]
    command = Path(f"/proc/{daemon.process.pid}/cmdline")
    texts += [command.read_bytes()] if command.exists() else []
    # Answers are JSON: `\/` in them means `/`.
    plain = b"\n".join(texts).decode("utf-8", "replace") + daemon.log()
    return plain + plain.replace("\\/", "/")


def test_planted_keys_reach_their_provider_and_are_found_nowhere_else(tmp_path: Path) -> None:
    home, config = tmp_path / "home", tmp_path / "config" / "compactd"
    config.mkdir(parents=True)
    with Loopback(then=quoting(KEY)) as server, Loopback(then=quoting(IN_FILE)) as other:
        keys = config / "keys.toml"
        keys.write_text(f'[mistral]\nkey = "{IN_FILE}"\nbase_url = "{other.base_url}/v1"\n')
        keys.chmod(0o600)
        names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY")
        env = {
            **QUICK,
            "COMPACTD_LOG": "debug",
            **dict.fromkeys(names, KEY),
            "OPENAI_BASE_URL": f"{server.base_url}/v1",
            "ANTHROPIC_BASE_URL": server.base_url,
            "GEMINI_BASE_URL": server.base_url,
            "OLLAMA_HOST": server.base_url,
        }
        with Daemon(home, env=env) as daemon:
            for model in [*(MODELS[wire] for wire in WIRES), "mistral/mistral-large-latest"]:
                session = daemon.call("session/start", model=model)["session_id"]
                assert Talk(daemon, session).ask("Hello")["type"] == "error", model
                daemon.call("session/append", session_id=session, messages=[{"role": "user", "content": "x"}])
                daemon.call("session/export", session_id=session, format="compactd")
            daemon.call("daemon/info")
            assert daemon.stop() == 0

            found = everything_of(daemon, home)

        asked = [seen for seen in [*server.requests, *other.requests] if KEY in str(seen.headers)]
        assert len(asked) >= 4
        assert any(IN_FILE in str(seen.headers) for seen in other.requests)
        assert not any(KEY in seen.path or KEY.encode() in seen.raw for seen in server.requests)
    for secret in (KEY, IN_FILE, SEEN_BEFORE, IN_FILE[:16]):
        assert secret not in found
    assert BLOT in found


def test_no_redirect_takes_a_key_or_a_word_to_another_host(tmp_path: Path) -> None:
    with Loopback(then=Answer(text="stolen")) as thief, Loopback() as server:
        server.play(*(Redirect(f"{thief.base_url}/v1/chat/completions", 300 + n) for n in (1, 2, 3, 7, 8)))
        env = {name: value for wire in WIRES for name, value in environment(wire, server.base_url).items()}
        with Daemon(tmp_path / "home", env=env) as daemon:
            for model in MODELS.values():
                session = daemon.call("session/start", model=model)["session_id"]

                end = Talk(daemon, session).ask("Hello")

                assert (end["type"], "redirect" in end["message"]) == ("error", True)
        assert (len(server.requests), thief.requests) == (5, [])
