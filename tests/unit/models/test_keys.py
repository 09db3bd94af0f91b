"""Keys: where they come from, and where they never appear."""

from __future__ import annotations

import copy
import pickle
import traceback
from pathlib import Path

import pytest

from compactd.models.providers.http import HttpRequest
from compactd.models.providers.keys import Keyring
from compactd.models.providers.secret import Secret, blot_keys
from compactd.protocol.errors import NoProvider
from tests.support.loopback import Fail, Loopback
from tests.unit.models.asking_loopback import hear, linked, provider_of, request_of

KEY = "sk-very-secret-0123456789"


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "keys.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


# --- a secret ---------------------------------------------------------------------------------------------


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret(KEY)

    for shown in (
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>40}",
        str([secret]),
        str({"a": secret}),
    ):
        assert KEY not in shown
    assert KEY.encode() not in pickle.dumps(secret)
    assert secret.reveal() == KEY
    assert secret == Secret(KEY) != Secret("other")
    assert copy.copy(secret).reveal() in ("", KEY)


def test_a_request_does_not_show_its_headers() -> None:
    assert KEY not in repr(HttpRequest(url="https://x", headers={"x-api-key": KEY}, body=b"abc"))


def test_a_key_that_is_quoted_back_is_blotted_out() -> None:
    assert (
        blot_keys(f"Incorrect API key provided: {KEY}.", (Secret(KEY),))
        == "Incorrect API key provided: [key]."
    )
    assert blot_keys("no none x", (Secret("x"),)) == "no none x"


async def test_an_error_that_quotes_the_key_is_told_without_it() -> None:
    body = f'{{"error":{{"message":"Incorrect API key provided: {KEY}","code":"invalid_api_key"}}}}'
    with Loopback([Fail(401, body)]) as server:
        async with linked() as links:
            provider = provider_of(server, "openai", links, environ={"OPENAI_API_KEY": KEY})
            failed = (await hear(provider, request_of("openai"))).failure

    told = (failed.message, str(failed.data), repr(failed), str(failed.failure), repr(provider))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert not [text for text in told if KEY in text]
    assert KEY not in "".join(traceback.format_exception(failed))
    assert "[key]" in failed.failure.text


# --- where from -------------------------------------------------------------------------------------------


def test_the_first_variable_that_is_set_counts() -> None:
    keyring = Keyring({"A": "  ", "B": " kb ", "C": "kc"}, None)

    assert keyring.key("google", ("A", "B", "C")) == Secret("kb")
    assert keyring.key("google", ("X",)) is None


def test_the_file_is_asked_where_the_environment_is_silent(tmp_path: Path) -> None:
    path = written(tmp_path, 'groq = "k1"\n[openai]\nkey = "k2"\nbase_url = "https://gateway.example/v1"\n')
    keyring = Keyring({"OPENAI_API_KEY": "k3"}, path).read()

    assert keyring.key("groq", ("GROQ_API_KEY",)) == Secret("k1")
    assert keyring.key("openai", ()) == Secret("k2")
    assert keyring.key("openai", ("OPENAI_API_KEY",)) == Secret("k3")
    assert keyring.key("xai", ()) is None
    assert keyring.base_url("openai", ()) == "https://gateway.example/v1"
    assert "k1" not in repr(keyring)


def test_a_provider_in_the_file_may_have_any_of_its_names(tmp_path: Path) -> None:
    keyring = Keyring({}, written(tmp_path, 'gemini = "k"')).read()

    assert keyring.key("google", ()) == Secret("k")


def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    keyring = Keyring({}, written(tmp_path, 'groq = "old"')).read()
    assert keyring.key("groq", ()) == Secret("old")

    written(tmp_path, 'groq = "newer"')
    assert keyring.key("groq", ()) == Secret("old")
    keyring.read()

    assert keyring.key("groq", ()) == Secret("newer")


def test_a_file_that_was_mended_or_removed_is_no_longer_what_it_was(tmp_path: Path) -> None:
    path = written(tmp_path, 'groq = "k')
    keyring = Keyring({}, path).read()
    with pytest.raises(NoProvider):
        keyring.key("groq", ())

    written(tmp_path, 'groq = "key"')
    assert keyring.read().key("groq", ()) == Secret("key")

    path.unlink()
    assert keyring.read().key("groq", ()) is None


def test_without_a_file_there_is_no_key(tmp_path: Path) -> None:
    assert Keyring({}, tmp_path / "none.toml").read().key("openai", ()) is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666, 0o660])
def test_a_file_that_others_can_read_is_not_used(tmp_path: Path, mode: int) -> None:
    keyring = Keyring({}, written(tmp_path, f'openai = "{KEY}"', mode)).read()

    with pytest.raises(NoProvider) as seen:
        keyring.key("openai", ())

    assert "chmod 600" in seen.value.message
    assert str(tmp_path) not in seen.value.message


@pytest.mark.parametrize(
    "text",
    [
        f'openai = "{KEY}',
        f"openai = {KEY}",
        f'[openai]\nkey = ["{KEY}"]',
        f'[openai]\nkey = "{KEY}"\nkey = 1',
    ],
)
def test_a_file_that_makes_no_sense_is_told_without_what_it_holds(tmp_path: Path, text: str) -> None:
    with pytest.raises(NoProvider) as seen:
        Keyring({}, written(tmp_path, text)).read().key("openai", ())

    assert "keys.toml" in seen.value.message
    assert KEY not in "".join(traceback.format_exception(seen.value))


@pytest.mark.parametrize("key", ["sk-a\nb", "schlüssel", "two words", "sk-\x00"])
def test_what_no_header_takes_is_no_key_and_is_not_quoted(key: str) -> None:
    with pytest.raises(NoProvider) as seen:
        Keyring({"OPENAI_API_KEY": key}, None).key("openai", ("OPENAI_API_KEY",))

    assert "OPENAI_API_KEY" in seen.value.message
    assert key not in seen.value.message
