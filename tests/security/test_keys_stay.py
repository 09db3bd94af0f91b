"""A key goes only to its provider's own hosts or to an address that the user set, whatever a client says."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactd.core.text.endpoints import bare_endpoint
from tests.support.client import Daemon
from tests.support.loopback import Answer, Fail, Loopback
from tests.support.own_loop import QUICK, Talk

KEY = "sk-of-the-user-0123456789"
NAMES = ("OPENAI", "ANTHROPIC", "AZURE_OPENAI", "VLLM", "OLLAMA", "STRIPE", "AWS_SECRET", "LOCAL")
KEYS = {**QUICK, **{f"{name}_API_KEY": KEY for name in NAMES}, "HF_TOKEN": KEY}

OFFLINE = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
"""Nothing leaves this machine, also when a test fails."""


def started(daemon: Daemon, provider: str, base_url: str) -> str:
    model = {"id": "m", "provider": provider, "base_url": base_url}
    return str(daemon.call("session/start", model=model)["session_id"])


@pytest.mark.parametrize(
    ("provider", "base_url"),
    [
        ("anthropic", "https://evil.example"),
        ("openai", "https://api.openai.com.evil.example/v1"),
        ("openai", "https://evil-api.openai.com/v1"),
        ("openai", "https://openai.com/v1"),
        ("openai", "https://status.api.openai.com/v1"),
        ("openai", "https://api.openai.com@evil.example/v1"),
        ("openai", "https://api.openai.com:443@evil.example/v1"),
        ("openai", "https://evil.example\\@api.openai.com.evil.example/v1"),
        ("openai", "https://evil.example#@api.openai.com/v1"),
        ("openai", "https://evil.example?@api.openai.com/v1"),
        ("openai", "https://api.openai.com:8443/v1"),
        ("openai", "http://api.openai.com/v1"),
        ("openai", "http://api.openai.com:443/v1"),
        ("openai", "https://\u0430pi.openai.com/v1"),
        ("openai", "https://xn--pi-7kc.openai.com/v1"),
        ("openai", "https://api.openai.com./v1"),
        ("openai", "https://api.openai.com\t.evil.example/v1"),
        ("openai", "http://10.1.2.3:8000/v1"),
        ("azure", "https://openai.azure.com.evil.example"),
        ("azure", "https://evilopenai.azure.com"),
        ("openai", "https://api.anthropic.com.evil.example/v1"),
        ("huggingface", "https://huggingface.co.evil.example/v1"),
    ],
)
def test_a_key_is_not_sent_to_an_address_that_only_looks_like_the_providers(
    provider: str, base_url: str, tmp_path: Path
) -> None:
    with Daemon(tmp_path / "home", env={**KEYS, **OFFLINE}) as daemon:
        session = started(daemon, provider, base_url)

        refused = daemon.refusal("agent/prompt", session_id=session, text="Hello")

    assert refused.code == 1007
    assert "no key is sent to" in refused.message
    assert "`hosts = [" in refused.message
    assert "keys.toml" in refused.message


@pytest.mark.parametrize(
    "provider", ["openai", "anthropic", "huggingface", "vllm", "ollama", "local", "stripe", "aws-secret"]
)
def test_a_listener_on_this_machine_gets_no_key_that_was_not_named_for_it(
    provider: str, tmp_path: Path
) -> None:
    with Loopback(then=Fail(status=401)) as server, Daemon(tmp_path / "home", env=KEYS) as daemon:
        end = Talk(daemon, started(daemon, provider, server.base_url)).ask("Hello")

        sent = [seen for seen in server.requests if KEY in str(seen.headers) or KEY.encode() in seen.raw]
        told = end["message"]

    assert (len(server.requests), sent) == (1, [])
    # Whose name reads no variable has no key that could be missed.
    is_known = provider not in ("local", "stripe", "aws-secret")
    assert ("no key is sent to" in told) is is_known, told


def test_a_name_that_no_provider_has_reads_no_variable_of_the_users(tmp_path: Path) -> None:
    with Loopback(then=Answer(text="x")) as server:
        env = {**KEYS, "STRIPE_BASE_URL": server.base_url}
        with Daemon(tmp_path / "home", env=env) as daemon:
            given = Talk(daemon, started(daemon, "stripe", server.base_url)).ask("Hello")
            unnamed = daemon.call("session/start", model="stripe/m")["session_id"]
            refused = daemon.refusal("agent/prompt", session_id=unnamed, text="Hello")

        assert (given["type"], refused.code) == ("agent_end", 1007)
        assert [seen for seen in server.requests if KEY in str(seen.headers)] == []


@pytest.mark.parametrize("how", ["the file's hosts", "the file's base_url", "the environment", "as a place"])
def test_a_key_goes_where_the_user_named_it(how: str, tmp_path: Path) -> None:
    config = tmp_path / "config" / "compactd"
    config.mkdir(parents=True)
    keys = config / "keys.toml"
    with Loopback(then=Answer(text="x")) as server:
        place, env = server.base_url, dict(KEYS)
        match how:
            case "the file's hosts":
                keys.write_text(f'[vllm]\nhosts = ["https://other.example", "{place}/anything"]\n')
            case "as a place":
                keys.write_text(f'[vllm]\nkey = "{KEY}"\nhosts = ["{place}"]\n')
                del env["VLLM_API_KEY"]
            case "the file's base_url":
                keys.write_text(f'[vllm]\nbase_url = "{place}/v1"\n')
            case _:
                env["VLLM_BASE_URL"] = f"{place}/v1"
        if keys.exists():
            keys.chmod(0o600)
        with Daemon(tmp_path / "home", env=env) as daemon:
            end = Talk(daemon, started(daemon, "vllm", f"{place}/v1")).ask("Hello")
            beside = Talk(daemon, started(daemon, "openai", f"{place}/v1")).ask("Hello")

        assert (end["type"], beside["type"]) == ("agent_end", "agent_end")
        assert [seen.headers.get("authorization") for seen in server.requests] == [f"Bearer {KEY}", None]


def test_a_named_host_is_named_with_its_port_and_its_scheme(tmp_path: Path) -> None:
    config = tmp_path / "config" / "compactd"
    config.mkdir(parents=True)
    keys = config / "keys.toml"
    with Loopback(then=Answer(text="x")) as server:
        port = server.base_url.rpartition(":")[2]
        keys.write_text(f'[vllm]\nhosts = ["127.0.0.1", "127.0.0.1:{port}", "http://127.0.0.1:1"]\n')
        keys.chmod(0o600)
        with Daemon(tmp_path / "home", env=KEYS) as daemon:
            Talk(daemon, started(daemon, "vllm", server.base_url)).ask("Hello")

        assert [seen.headers.get("authorization") for seen in server.requests] == [None]


# --- credentials in an address ----------------------------------------------------------------------------

SECRETS = ("SEKRETPW", "SEKRETQ", "SEKRETUSER", "SEKRETF")


@pytest.mark.parametrize(
    "address",
    [
        "http://SEKRETUSER:SEKRETPW@{place}/v1?key=SEKRETQ&api-version=1#SEKRETF",
        "http://SEKRETUSER:SEK/SEKRETPW@{place}/v1?x=SEKRETQ",
        "  http://SEKRETUSER@{place}/v1\n?token=SEKRETQ",
        "http://a@b:SEKRETPW@{place}/v1",
    ],
)
def test_credentials_in_an_address_are_written_and_told_nowhere(address: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    said_so = "This model's maximum context length is 90000 tokens. However, you requested 95000 tokens."
    body = {"error": {"message": said_so}}
    text = "some words that make the conversation as long as the error says " * 6000
    with Loopback(then=Answer(text="x")) as server:
        place = server.base_url.removeprefix("http://")
        model = {"id": "claude-sonnet-4-5", "provider": "anthropic", "base_url": address.format(place=place)}
        with Daemon(home, env={**QUICK, "COMPACTD_LOG": "debug"}) as daemon:
            first = daemon.call("session/start", model=model, session_id="one")
            daemon.call("session/append", session_id="one", messages=[{"role": "user", "content": text}])
            daemon.call("turn/error", session_id="one", error={"status": 400, "body": body})
            daemon.call("agent/state", session_id="one")
            daemon.call("models/list")
            daemon.call("models/lookup", model="claude-sonnet-4-5", base_url=model["base_url"], explain=True)
            daemon.call("session/start", model="anthropic/claude-sonnet-4-5", session_id="two")
            daemon.call("model/set", session_id="two", model=model)
            daemon.call("session/export", session_id="one", format="compactd")
            Talk(daemon, "two").ask("Hello")
            said = b"".join(got.body for got in daemon.received).decode() + daemon.log()
            assert daemon.stop() == 0

        written = "".join(file.read_text("utf-8", "replace") for file in home.rglob("*") if file.is_file())
        assert [word for word in SECRETS if word in said + written] == []
        assert "no credentials in an address" in str(first["warnings"])
        assert server.base_url in written
        assert server.requests[0].headers.get("authorization") is None


def test_an_address_keeps_its_path_and_spelling() -> None:
    plain = "https://Gateway.example:8443/v1/@team/a%20b"

    assert bare_endpoint(plain) == plain
    assert bare_endpoint("http://[::1]:8000/v1") == "http://[::1]:8000/v1"
    assert bare_endpoint("localhost:8000/v1") == "localhost:8000/v1"
    assert bare_endpoint("") == ""
