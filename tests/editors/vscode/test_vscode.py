"""The VS Code extension in the real editor, headless, with the real daemon and a fake provider.

What each test saw is printed (`-s`); its pictures are kept in build/editors/vscode/.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editors.vscode.house import BIN, HERE, ROOT, SHOTS, House, fresh, modules, package
from tests.editors.vscode.playing import HOSTILE, LOADER, long_session, reply
from tests.support.loopback import Loopback
from tests.support.own_loop import environment

pytestmark = [pytest.mark.editor, pytest.mark.timeout(900)]

LARGEST_BYTES = 500 * 1024
PICTURE = ROOT / "docs/vscode.png"
"""The screenshot in the README; the test takes it again if COMPACTD_PICTURES is set."""
LARGEST_PICTURE_BYTES = 200 * 1024


@pytest.fixture(scope="module")
def vsix() -> Path:
    assert (modules() / ".installed").exists(), f"run {HERE / 'setup.sh'} first"
    return package()


@pytest.fixture(scope="module")
def house(vsix: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = fresh(tmp_path_factory.mktemp("vscode") / "home")
    settings = {
        "compactd.model": "openai/gpt-4o",
        "compactd.compaction": {"context_window": 12000, "strategy": "extract"},
        "compactd.startTimeout": 60,
    }
    with (
        Loopback(reply=reply) as model,
        House(folder, vsix, settings, environment("openai", model.base_url)) as house,
    ):
        yield house


def project(folder: Path, command: list[str] | None = None, **settings: Any) -> Path:
    """A workspace with a file, and the daemon in its Python environment, or `command` in its settings."""
    fresh(folder)
    (folder / "loader.py").write_text(LOADER)
    if command is None:
        (folder / ".venv/bin").mkdir(parents=True)
        (folder / ".venv/bin/compactd").symlink_to(BIN / "compactd")
    else:
        (folder / ".vscode").mkdir()
        (folder / ".vscode/settings.json").write_text(json.dumps({"compactd.command": command, **settings}))
    return folder


def false(name: str) -> list[str]:
    """The command of a daemon that is none."""
    return [sys.executable, str(HERE / f"daemons/{name}.py")]


def shown(saw: dict[str, Any]) -> None:
    for name, value in saw.items():
        for each in value if isinstance(value, list) and value else [value]:
            text = each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
            print(f"{name}: {' ⏎ '.join(text.split(chr(10)))}")


DRAWN = [
    "span: Model",
    "h3: What I found",
    "p: The cache is never emptied. See the manual and loader.py:",
    "ul: ☑ read the loader ☐ mend it first write then tests",
    "div: step tokens read 1,200 edit 80",
    "blockquote: Never touch the public API.",
    'div: python Copy def write(key, value): STORE[key] = "<b>value</b>" CACHE.clear()',
    "p: image: a picture from elsewhere and a command (command:workbench.action.quit).",
]
"""The elements of `MARKDOWN_ANSWER`, each with its words."""


def told_work(work: dict[str, Any]) -> set[str]:
    """Return what the panel must say of the plan and the checks."""
    status = {"in_progress": "in progress"}
    plan = {f"{status.get(task['status'], task['status'])}: {task['text']}" for task in work["plan"]}
    checks = {f"tests {check['outcome']}: {check['command']}" for check in work["checks"]}
    assert plan
    assert checks
    return plan | checks


def test_the_package_is_small_and_installs_the_ordinary_way(house: House) -> None:
    assert house.vsix.stat().st_size <= LARGEST_BYTES
    assert "was successfully installed" in house.installed.stdout
    (notice,) = house.extensions.glob("compactd.compactd-*/dist/NOTICE.txt")
    assert (notice.parent / "extension.js").exists()
    licences = notice.read_text()
    assert re.search(r"^marked [0-9.]+ \(MIT\)$", licences, re.MULTILINE)
    assert re.search(r"^vscode-languageclient [0-9.]+ \(MIT\)$", licences, re.MULTILINE)


def test_a_day_with_the_extension(house: House, tmp_path: Path) -> None:
    folder = project(tmp_path / "my wörk 100%25 %")

    saw = house.play("day.mjs", {"url": house.url(folder), "folder": str(folder)})

    shown(saw)
    assert saw["gauge at the start"] == "○ compactd"
    assert saw["gauge after the first answer"] < saw["gauge after the third answer"]
    assert saw["the file before it was accepted"] == LOADER
    assert saw["the file after it was accepted"] == LOADER + "    CACHE.clear()\n"
    assert saw["spoken"].startswith(f"Context {saw['gauge after the third answer']} percent full: ")
    assert "as the provider reported" in saw["hover"]
    assert "window 12,000: override" in saw["hover"]
    assert "messages summarised" in saw["preview"]
    assert saw["preview with less kept"] != saw["preview"]
    assert {"summarised", "kept"} <= set(saw["fates"])
    assert saw["gauge after the compaction"] < saw["gauge after the third answer"]
    assert "Compacted " in saw["told"]
    assert "Never touch the public API" in saw["summary"]
    assert saw["originals behind it"] >= 4
    assert any("loader.py · 1 edit, uncommitted" in line for line in saw["work"])
    assert saw["read by keys"] == "Where is the cache emptied? Never touch the public API."
    assert "compacted" in saw["found"]
    assert saw["gauge after undo"] > saw["gauge after redo"] == saw["gauge after the compaction"]
    assert saw["told of the restart"].endswith("nothing was lost")
    assert saw["pop-ups of ours"] == []
    assert saw["gauge after the restart"] == saw["gauge after redo"]
    assert any("Where is the" in row and " % · 8 messages" in row for row in saw["list"])
    if os.environ.get("COMPACTD_PICTURES"):
        shutil.copy(SHOTS / "day-12-picture.png", PICTURE)
    assert PICTURE.stat().st_size <= LARGEST_PICTURE_BYTES


def test_words_of_others_are_text_and_both_pages_are_accessible(house: House, tmp_path: Path) -> None:
    folder = project(tmp_path / "hostile")
    (folder / "session.json").write_text(json.dumps(HOSTILE))
    (folder / ".vscode").mkdir()
    theme = {"workbench.colorTheme": "Default Light Modern"}
    (folder / ".vscode/settings.json").write_text(json.dumps(theme))

    settings = str(folder / ".vscode/settings.json")
    saw = house.play("hostile.mjs", {"url": house.url(folder), "file": "session.json", "settings": settings})

    shown(saw)
    assert '<img src=x onerror="window.ran=[1]"> ⟨202E⟩gnp.exe⟨202C⟩' in saw["lines"][0]
    assert "⟨001B⟩[31mred⟨0007⟩" in saw["lines"][0]
    assert saw["lines"][1] == "<script>window.ran=['message']</script><svg onload=alert(1)>"
    for page in ("context", "chat", "chat with Markdown"):
        assert saw[page]["ran"] == []
        assert saw[page]["elements"] == 0
    assert saw["rows after foreign messages"] is True
    assert '<iframe src="javascript:alert(1)"></iframe>' in saw["work"][-1]
    assert saw["text after foreign messages"] == saw["entry"]
    assert saw["drawn"] == DRAWN
    assert not {"img", "script", "b"} & set(saw["inside of it"])
    assert saw["copied"] == 'def write(key, value):\n    STORE[key] = "<b>value</b>"\n\n    CACHE.clear()'
    assert "https://example.org/manual?page=1" in saw["asked of a link"]
    assert saw["pages opened"] == 0
    assert saw["reports before"] == []
    assert saw["injected"]["ran"] == []
    assert saw["injected"]["loaded"] is False
    assert saw["injected"]["fetched"] is False
    assert set(saw["injected"]["violations"]) >= {"script-src-elem", "img-src"}
    serious = [
        each
        for page in ("context", "chat")
        for theme in ("light", "dark")
        for each in saw[f"axe in {page}, {theme}"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_a_daemon_that_is_of_no_use_is_told_in_words(house: House, tmp_path: Path) -> None:
    cases = [
        ("nothing there", ["/nowhere/compactd"], "“/nowhere/compactd”, which is not there"),
        ("an old one", false("old"), "speaks protocol 0.4; this extension needs 1.0. Update the daemon"),
        ("another program", false("stranger"), "other-server 9 is not compactd"),
        ("garbage", false("garbage"), "is not the protocol: “Welcome to the wrong program!”"),
        ("one that hangs", false("hanging"), "gave no answer within 2 s"),
        ("one that gives up", false("loud"), "the daemon ended (exit code 3)"),
    ]
    folder = project(tmp_path / "useless", ["/nowhere/compactd"])

    saw = house.play(
        "daemons.mjs",
        {
            "url": house.url(folder),
            "folder": str(folder),
            "cases": [
                {"name": name, "command": command, "says": says, "seconds": 2 if "2 s" in says else 60}
                for name, command, says in cases
            ],
            "good": [str(BIN / "compactd")],
        },
    )

    shown(saw)
    for name, _, says in cases:
        assert says in saw[name]
        assert says in saw[f"{name}: spoken"]
    assert saw["goes on with a good one"] is True
    logged = "".join(log.read_text() for log in house.logs())
    assert "daemon: I think about it" in logged
    assert "daemon: no licence file: giving up" in logged


def test_a_second_window_on_a_session_reads_and_says_so(house: House, tmp_path: Path) -> None:
    saw = house.play("windows.mjs", {"url": house.url(project(tmp_path / "two"))})

    shown(saw)
    assert saw["asked for what is outside"] == 0
    assert saw["the tool"] == "← read_file failed"
    assert "can only be read" in saw["told"]
    assert saw["spoken"].endswith("Open in another program.")
    assert saw["can write"] is False
    assert "open in another program" in saw["chat says"]
    assert re.search(r"open in another program \(.*process \d+\)", saw["refused"])


def test_looking_takes_no_lock_and_a_change_does(house: House, tmp_path: Path) -> None:
    agent = {"command": [str(BIN / "compactd"), "serve"], "env": house.env}

    saw = house.play("looking.mjs", {"url": house.url(project(tmp_path / "looking")), "agent": agent})

    shown(saw)
    assert saw["the agent may write while it is looked at"] is True
    assert "another program" not in saw["spoken while nobody writes"]
    assert saw["told while nobody writes"] == []
    assert f"process {saw['process of the agent']})" in saw["refused"]
    assert "said elsewhere" in saw["the new message"]
    first, second = saw["first turn in the panel"], saw["second turn in the panel"]
    assert told_work(saw["first turn in the daemon"]) <= {row.partition(" e")[0] for row in first}
    assert told_work(saw["second turn in the daemon"]) <= {row.partition(" e")[0] for row in second}
    assert any(row.startswith("in progress: Step 2 of the plan") for row in first)
    assert any(row.startswith("done: Step 2 of the plan") for row in second)
    assert saw["the agent may write after the compaction"] is False


def test_in_a_workspace_of_two_folders_a_chat_works_in_the_chosen_one(house: House, tmp_path: Path) -> None:
    first, second = project(tmp_path / "first"), project(tmp_path / "second", [str(BIN / "compactd")])
    both = tmp_path / "both.code-workspace"
    both.write_text(json.dumps({"folders": [{"path": "first"}, {"path": "second"}]}))

    saw = house.play(
        "roots.mjs",
        {"url": house.url(both), "first": str(first / "loader.py"), "second": str(second / "loader.py")},
    )

    shown(saw)
    assert len(saw["folders offered"]) == 2
    assert saw["in the chosen folder"] == LOADER + "    CACHE.clear()\n"
    assert saw["in the other"] == LOADER
    assert saw["steps"] == ["The daemon", "A session", "Compact and undo"]


def test_a_workspace_that_is_not_trusted_is_read_only_and_starts_nothing_of_its_own(
    vsix: Path, tmp_path: Path
) -> None:
    marks = tmp_path / "setting ran", tmp_path / "environment ran"
    folder = project(tmp_path / "evil", [*false("evil"), str(marks[0])])
    own = folder / ".venv/bin/compactd"
    own.parent.mkdir(parents=True)
    own.write_text(f"#!/bin/sh\n: > '{marks[1]}'\n")
    own.chmod(0o755)
    (folder / "session.json").write_text(json.dumps(HOSTILE))
    settings = {
        "compactd.command": [str(BIN / "compactd")],
        "security.workspace.trust.startupPrompt": "never",
        "security.workspace.trust.enabled": True,
    }

    with House(fresh(tmp_path / "home"), vsix, settings, trusts=False) as house:
        saw = house.play("untrusted.mjs", {"url": house.url(folder), "file": "session.json"})

    shown(saw)
    assert not any(mark.exists() for mark in marks)
    assert (saw["can compact"], saw["can undo"], saw["can pin"], saw["can write"]) == (False,) * 4
    assert saw["can search"] is True
    assert "not trusted" in saw["chat says"]


def test_a_long_context_opens_and_a_thousand_events_a_second_do_not_stutter(
    house: House, tmp_path: Path
) -> None:
    long, streaming = (
        project(tmp_path / "long"),
        project(tmp_path / "streaming", false("streaming")),
    )
    (long / "long.json").write_text(json.dumps(long_session(5000)))

    saw = house.play(
        "speed.mjs",
        {"long": house.url(long), "streaming": house.url(streaming), "file": "long.json"},
    )

    shown(saw)
    logged = "".join(log.read_text() for log in house.logs())
    shown(
        {
            "activations": re.findall(r"activated in .*", logged),
            "gauges": re.findall(r"first gauge .*", logged),
        }
    )
    # A page comes with what fills a screen, and never has more rows than that.
    assert max(saw["rows in the page"], saw["rows at the end"], saw["rows around it"]) < 100
    assert all(count <= 200 for count in saw["entries that came with the page"])
    assert saw["the entry that was searched"] == "2719"
    # Two keys may fall into one frame.
    assert min(saw["idle"]["keys"], saw["streaming"]["keys"]) >= 30
    # How quick they come is printed above, and no matter of a test.
