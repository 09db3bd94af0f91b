"""Which model an agent will use, according to its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from compactd.cli.agent_files.target_model import CLAUDE_CODE_WINDOW, CODEX_WINDOW, TargetModel, target_model
from compactd.cli.framework.compacted_file import CONTINUED

MOCK = '"provider": {"mock": {"models": {"m/1": {"limit": {"context": 20000}}}}}'
ROWS = '[{"id": "other", "contextWindow": 1}, {"id": "m", "contextWindow": 30000}]'


class Case(NamedTuple):
    """Settings, and what they say."""

    agent: str
    files: dict[str, str]
    model: str | None
    window: int | None = None
    max_window: int | None = None
    environ: Mapping[str, str] = {}


CASES = {
    "Claude Code, by its user": Case(
        "claude-code", {"home/.claude/settings.json": '{"model": "opus"}'}, "opus", None, CLAUDE_CODE_WINDOW
    ),
    "Claude Code, by the folder": Case(
        "claude-code",
        {
            "home/.claude/settings.json": '{"model": "opus"}',
            "work/.claude/settings.json": '{"model": "haiku"}',
            "work/.claude/settings.local.json": '{"model": "sonnet[1m]"}',
        },
        "sonnet[1m]",
        None,
        1_000_000,
    ),
    "Claude Code, by a variable, with a smaller window": Case(
        "claude-code",
        {"home/.claude/settings.json": '{"model": "opus", "autoCompactWindow": 150000}'},
        "claude-opus-4-6",
        None,
        100_000,
        {"ANTHROPIC_MODEL": "claude-opus-4-6", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"},
    ),
    "Codex": Case("codex", {"home/.codex/config.toml": 'model = "gpt-5.2"'}, "gpt-5.2", None, CODEX_WINDOW),
    "Codex, by a profile": Case(
        "codex",
        {
            "home/.codex/config.toml": 'model = "gpt-5.2"\nprofile = "local"\nmodel_context_window = 9\n'
            '[profiles.local]\nmodel = "qwen"\nmodel_context_window = 32000\n'
        },
        "qwen",
        32_000,
    ),
    "Gemini CLI": Case(
        "gemini-cli", {"home/.gemini/settings.json": '{"model": {"name": "gemini-3"}}'}, "gemini-3"
    ),
    "Gemini CLI, of 2025": Case(
        "gemini-cli",
        {"work/.gemini/settings.json": '{"model": "gemini-2.5-flash"} // mine'},
        "gemini-2.5-flash",
    ),
    "pi": Case(
        "pi",
        {
            "home/.pi/agent/settings.json": '{"defaultProvider": "mock", "defaultModel": "m"}',
            "home/.pi/agent/models.json": f'{{"providers": {{"mock": {{"models": {ROWS}}}}}}}',
        },
        "mock/m",
        30_000,
    ),
    "OpenCode": Case(
        "opencode",
        {"work/opencode.jsonc": f'{{/* mine */ "model": "mock/m/1", {MOCK},}}'},
        "mock/m/1",
        20_000,
    ),
    "OpenCode, with the provider elsewhere": Case(
        "opencode",
        {
            "work/opencode.json": '{"model": "mock/m/1"}',
            "home/.config/opencode/opencode.json": f'{{"model": "other", {MOCK}}}',
        },
        "mock/m/1",
        20_000,
    ),
}


def ask(tmp_path: Path, agent: str, files: dict[str, str], environ: Mapping[str, str] = {}) -> TargetModel:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    home = {"HOME": str(tmp_path / "home"), **environ}
    return target_model(agent, tmp_path / "work", "session-model", home)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_model_is_the_one_that_the_settings_name(tmp_path, case) -> None:
    found = ask(tmp_path, case.agent, case.files, case.environ)

    assert (found.model, found.window, found.max_window) == (case.model, case.window, case.max_window)
    assert found.is_named
    assert found.origin.startswith("named in ")


@pytest.mark.parametrize(
    ("agent", "model", "window"),
    [
        ("claude-code", "claude-sonnet-4-5", CLAUDE_CODE_WINDOW),
        ("codex", "gpt-5.5", CODEX_WINDOW),
        ("gemini-cli", "gemini-2.5-pro", 1_048_576),
        ("opencode", "session-model", None),
        ("pi", "session-model", None),
    ],
)
def test_without_settings_the_model_is_assumed_and_it_says_so(tmp_path, agent, model, window) -> None:
    found = ask(tmp_path, agent, {})

    assert (found.model, found.window, found.is_named) == (model, window, False)
    assert found.origin.startswith("assumed")


@pytest.mark.parametrize("text", ["{", "[]", '{"model": 7}', "\x00", '{"model": {"name": []}}', "model = 7"])
@pytest.mark.parametrize("agent", CONTINUED)
def test_settings_that_cannot_be_read_are_skipped(tmp_path, agent, text) -> None:
    names = (
        *(f".claude/{name}" for name in ("settings.json", "settings.local.json")),
        ".codex/config.toml",
        ".gemini/settings.json",
        ".pi/agent/settings.json",
        ".config/opencode/opencode.json",
    )

    found = ask(tmp_path, agent, {f"home/{name}": text for name in names})

    assert not found.is_named


def test_the_folder_cannot_make_claude_codes_window_smaller(tmp_path) -> None:
    found = ask(tmp_path, "claude-code", {"work/.claude/settings.json": '{"autoCompactWindow": 10}'})

    assert found.window == CLAUDE_CODE_WINDOW
