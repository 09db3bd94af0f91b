"""`compactd models`: one model, a provider's models, all providers, and windows learned from servers."""

from __future__ import annotations

import re
from time import time

import pytest

from compactd.core.models.observed import Observed
from compactd.storage.observed_windows import FILE, Observations
from tests.support.command_line import ANSI, TERMINAL, run, run_each


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def listed(home):
    """The providers and Anthropic's models, as text and as JSON."""
    return run_each(
        home,
        ("models", "--all"),
        ("models", "--all", "--json"),
        ("models", "--provider", "anthropic"),
        ("models", "--provider", "Anthropic", "--json"),
    )


def taught(home, *observed: Observed) -> None:
    """Store windows that servers reported to earlier processes."""
    file = Observations(home / "data" / FILE)
    for one in observed:
        file.add(one)


NOW = time()
"""The current time, because windows that were learned long ago do not count."""

OPUS = Observed(
    model="claude-opus-4-5",
    provider="anthropic",
    window=150_000,
    by="rejection",
    at=NOW,
    known=200_000,
)
LOCAL = Observed(
    model="nobody-knows-this",
    provider="local",
    base_url="http://localhost:11434/v1",
    window=8_192,
    by="server",
    at=NOW + 100,
)


# --- one model --------------------------------------------------------------------------------------------


def test_a_known_model_is_told_in_a_line_for_each_fact(home) -> None:
    text, data = run_each(home, ("models", "claude-opus-4-5"), ("models", "claude-opus-4-5", "--json"))

    assert (text.code, text.err, data.code) == (0, "", 0)
    assert text.lines[0] == "model     anthropic/claude-opus-4-5"
    assert text.lines[1].startswith("window      200,000   fact (")
    assert f"{data.json['source']}; {data.json['how']}" in text.lines[1]
    assert f"output    {data.json['output_limit']:>9,}   at most" in text.lines
    assert any(line.startswith("price     $") for line in text.lines)
    assert text.lines[-1] == f"tokenizer {data.json['tokenizer']}"
    assert "steps" not in data.json


def test_a_guess_is_never_shown_as_a_fact(home) -> None:
    unknown, kin = run_each(home, ("models", "nobody-knows-this"), ("models", "openai/gpt-5-acme-tuned"))
    terminal = run(home, "models", "nobody-knows-this", env=TERMINAL)

    assert unknown.lines[1] == "window     128,000?   a guess: no source knows this model"
    assert "fact" not in unknown.out
    numbers = [line for line in kin.lines if line.split()[0] in ("window", "input", "output")]
    assert numbers
    assert all("? " in line and "a guess" in line for line in numbers)
    # Yellow is what needs attention.
    assert "\x1b[33mwindow" in terminal.out
    assert terminal.words == unknown.words


def test_a_local_models_window_is_a_bound_that_the_server_may_not_reach(home) -> None:
    seen = run(home, "models", "qwen2.5-coder:7b")

    assert seen.lines[1].endswith(", at most: a local server may use less")


def test_explain_tells_every_step_and_what_it_found(home) -> None:
    plain, text, data, unknown = run_each(
        home,
        ("models", "claude-opus-4-5"),
        ("models", "claude-opus-4-5", "--explain"),
        ("models", "claude-opus-4-5", "--explain", "--json"),
        ("models", "nobody-knows-this", "--explain"),
    )
    steps = data.json["steps"]

    assert text.lines[: len(plain.lines)] == plain.lines
    assert text.lines[len(plain.lines)] == ""
    told = text.lines[len(plain.lines) + 1 :]
    assert [line.split("  ")[0] for line in told] == [step["step"] for step in steps]
    assert all(
        one["key"] in line and (one["found"] or "nothing") in line
        for one, line in zip(steps, told, strict=True)
    )
    assert "200" in told[-1]
    assert len(unknown.lines) > len(told)


# --- what servers taught ----------------------------------------------------------------------------------


def test_a_learned_window_stands_in_the_lookup_and_in_the_lists_with_its_source(tmp_path) -> None:
    taught(tmp_path, LOCAL, OPUS)

    lookup, local, everything, one, other, data = run_each(
        tmp_path,
        ("models", "claude-opus-4-5"),
        ("models", "nobody-knows-this", "--base-url", "http://localhost:11434/v1"),
        ("models",),
        ("models", "--provider", "anthropic"),
        ("models", "--provider", "openai"),
        ("models", "--json"),
    )

    assert lookup.lines[1].startswith("window      150,000   learned: a rejection (the registry says 200,000")
    assert local.lines[1].startswith(
        "window        8,192   learned: reported by the server at http://localhost"
    )
    learned = everything.lines.index("2 windows learned from servers; --forget removes them")
    assert [line.split(", 20")[0] for line in everything.lines[learned + 1 : learned + 5 : 2]] == [
        "   150,000  anthropic/claude-opus-4-5: a rejection",
        "     8,192  local/nobody-knows-this: reported by the server at http://localhost:11434/v1",
    ]
    assert "1 window learned from servers; --forget removes them" in one.lines
    assert "learned" not in other.out
    assert [found["window"] for found in data.json["observed"]] == [150_000, 8_192]


def test_what_was_learned_of_one_model_is_forgotten_and_nothing_else(tmp_path) -> None:
    taught(tmp_path, LOCAL, OPUS)

    wrong = run(tmp_path, "models", "--forget", "gpt-5")
    done = run(tmp_path, "models", "--forget", "claude-opus-4-5")
    again = run(tmp_path, "models", "--forget", "claude-opus-4-5")
    left = run(tmp_path, "models", "--json").json["observed"]

    assert (wrong.code, wrong.out) == (3, "nothing to forget: no window was learned: gpt-5\n")
    assert (done.code, done.out) == (0, "forgot 1 learned window: claude-opus-4-5\n")
    assert again.code == 3
    assert [one["model"] for one in left] == ["nobody-knows-this"]


def test_without_a_name_everything_learned_is_forgotten(tmp_path) -> None:
    taught(tmp_path, LOCAL, OPUS)

    elsewhere = run(tmp_path, "models", "--forget", "--provider", "openai", "--json")
    done = run(tmp_path, "models", "--forget", "--json")
    again = run(tmp_path, "models", "--forget")

    assert (elsewhere.code, elsewhere.json) == (3, {"forgotten": 0})
    assert (done.code, done.json) == (0, {"forgotten": 2})
    assert (again.code, again.out) == (3, "nothing to forget: no window was learned\n")


def test_an_endpoint_and_a_provider_are_forgotten_by_themselves(tmp_path) -> None:
    taught(tmp_path, LOCAL, OPUS)

    endpoint = run(tmp_path, "models", "--forget", "--base-url", "http://localhost:11434/v1/")
    provider = run(tmp_path, "models", "--forget", "--provider", "anthropic")

    assert (endpoint.code, provider.code) == (0, 0)
    assert endpoint.out == "forgot 1 learned window: at http://localhost:11434/v1/\n"
    assert provider.out == "forgot 1 learned window: of anthropic\n"


# --- lists ------------------------------------------------------------------------------------------------


def test_all_providers_are_told_with_their_counts_and_how_to_go_on(listed) -> None:
    text, data, *_ = listed
    providers = data.json["providers"]

    assert (text.code, text.err) == (0, "")
    assert text.lines[0] == f"{data.json['models']:,} models of {len(providers):,} providers"
    assert text.lines[1 : len(providers) + 1] == [f"{one['provider']} {one['models']:,}" for one in providers]
    assert sum(one["models"] for one in providers) == data.json["models"] > 1_000
    assert [one["provider"] for one in providers] == sorted(one["provider"] for one in providers)
    assert all(0 <= one["retired"] <= one["models"] for one in providers)
    assert data.json["observed"] == []
    assert text.lines[-1] == "--provider NAME lists its models; `compactd models NAME` shows one model"


def test_a_terminal_shows_many_providers_on_a_line_and_parts_none_from_its_count(home, listed) -> None:
    terminal, text = run(home, "models", "--all", env=TERMINAL), listed[0]

    told = [part for line in terminal.lines for part in ANSI.sub("", line).split(" · ")]

    assert told == text.lines
    assert len(terminal.lines) < len(text.lines) / 2
    assert max(map(len, terminal.lines)) <= 80


def test_a_providers_models_stand_in_a_table_with_their_numbers_below_each_other(listed) -> None:
    *_, text, data = listed
    models = data.json["models"]

    assert (text.code, text.err, set(data.json)) == (0, "", {"models", "observed"})
    assert {one["provider"] for one in models} == {"anthropic"}
    assert text.lines[0].startswith(f"anthropic: {len(models)} models")
    assert text.lines[1] == "    window       input      output  model"
    table = text.lines[2:]
    opus = next(one for one in models if one["model"] == "claude-opus-4-5")
    assert f"{200_000:>10,}{'-':>12}{opus['output_limit']:>12,}  claude-opus-4-5" in table
    assert [line[36:].split(", ")[0] for line in table] == [one["model"] for one in models]
    assert [line[:10].strip() for line in table] == [f"{one['context_window']:,}" for one in models]
    retired = [one["model"] for one in models if one["retired"]]
    assert [line[36:].split(", ")[0] for line in table if ", retired" in line] == retired
    disputed = [one["model"] for one in models if one["confidence"] == "disputed"]
    assert [line[36:].split(", ")[0] for line in table if ", disputed" in line] == disputed


def test_a_provider_that_nobody_knows_is_told_with_what_to_do(home) -> None:
    text, data = run_each(
        home, ("models", "--provider", "nobody"), ("models", "--provider", "nobody", "--json")
    )

    assert (text.code, text.out) == (2, "")
    assert text.err == (
        "no model of the provider 'nobody' is known.\n`compactd models --all` lists the providers.\n"
    )
    assert (data.code, set(data.json)) == (2, {"error"})


def test_options_that_make_no_sense_together_are_a_wrong_command_line(home) -> None:
    seen = run_each(
        home,
        ("models", ""),
        ("models", "--explain"),
        ("models", "gpt-5", "--explain", "--forget"),
        ("models", "--base-url", "http://localhost:1"),
        ("models", "one", "two"),
        ("models", "--all", "--forget"),
    )

    assert [(one.code, one.out) for one in seen] == [(2, "")] * len(seen)
    assert all(len(one.err.splitlines()) == 2 for one in seen)


def test_without_a_name_a_short_list_shows_current_models(home) -> None:
    text, data = run_each(home, ("models",), ("models", "--json"))
    narrow = run(home, "models", env={**TERMINAL, "COLUMNS": "40"})

    table = text.lines[1 : text.lines.index("")]
    assert (text.code, text.err) == (0, "")
    assert 10 <= len(table) <= 16
    assert [line.split()[-1] for line in table] == [
        f"{one['provider']}/{one['model']}" for one in data.json["models"]
    ]
    assert len({line.split()[-1].split("/")[0] for line in table}) >= 6
    assert not any(one["retired"] for one in data.json["models"])
    assert "--all lists all" in text.lines[-1]
    assert max(len(ANSI.sub("", line)) for line in narrow.lines) <= 40


# --- names that nobody knows ------------------------------------------------------------------------------


def test_an_unknown_name_gets_similar_names(home) -> None:
    typo, none = run_each(home, ("models", "claude-opsu-4-5"), ("models", "nobody-knows-this"))

    assert typo.lines[-1].startswith("did you mean anthropic/claude-opus-4-5")
    assert "did you mean" not in none.out


def test_the_makers_own_names_are_suggested_first_and_a_date_is_no_version(home) -> None:
    typo, family, provider = run_each(
        home, ("models", "claud-sonet"), ("models", "gpt"), ("models", "anthropic")
    )

    named = re.findall(r"[\w-]+(?=/)", typo.lines[-1])
    assert set(named) == {"anthropic"}
    assert not re.search(r"20\d\d-\d\d-\d\d", " ".join(family.lines[-2:]))
    assert provider.lines[-1] == (
        "anthropic is a provider; `compactd models --provider anthropic` lists its models"
    )


def test_an_alias_is_the_newest_model_of_that_name(home) -> None:
    alias, million, exact = run_each(
        home, ("models", "opus", "--json"), ("models", "sonnet[1m]", "--json"), ("models", "gpt-5", "--json")
    )

    assert alias.json["model"].startswith("claude-opus-")
    assert (alias.json["provider"], alias.json["confidence"]) == ("anthropic", "fact")
    assert (million.json["context_window"], million.json["source"]) == (1_000_000, "selector")
    assert (exact.json["model"], exact.json["how"]) == ("gpt-5", "first-party, by its name")


def test_every_command_says_that_nobody_knows_the_model_that_was_given(home, tmp_path) -> None:
    file = tmp_path / "talk.json"
    file.write_text('[{"role": "user", "content": "Hello there."}]')
    unknown, alias, data, local = run_each(
        home,
        ("inspect", file, "--model", "claude-opsu-4-5"),
        ("inspect", file, "--model", "opus"),
        ("inspect", file, "--model", "nobody-knows-this", "--json"),
        ("inspect", file, "--model", "ollama/mine"),
    )

    assert unknown.err.startswith(
        "note: no source knows the model 'claude-opsu-4-5', so its window of 128,000"
    )
    assert "did you mean anthropic/claude-opus-4-5" in unknown.err
    assert "nobody-knows-this" in data.err
    assert data.json["window"]
    assert "no source knows" not in alias.err + local.err
