"""What docs/openclaw.md and the example say is true."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.environment import ROOT
from tests.frameworks.node.driving import packages as compilers
from tests.frameworks.openclaw.building import BASE, HERE, PLUGIN, built
from tests.frameworks.openclaw.gateway import Gateway, Json

PAGE = (ROOT / "docs" / "openclaw.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def bare(tmp_path: Path, own_home: Path) -> Gateway:
    """OpenClaw without a plugin."""
    made = Gateway(tmp_path)
    configure(made, plugins={})
    return made


def configure(gateway: Gateway, **sections: Any) -> None:
    path = gateway.folder / "openclaw.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **sections}))


def plugins_of(gateway: Gateway) -> Json:
    found: Json = json.loads((gateway.folder / "openclaw.json").read_text())["plugins"]
    return found


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A clone as far as the plugin needs it, with the compiler that `npm install` would fetch."""
    place = compilers()
    assert place is not None
    made = tmp_path / "compactd"
    for folder in (PLUGIN, BASE):
        ignored = shutil.ignore_patterns("node_modules", "dist", "*.tgz")
        shutil.copytree(folder, made / folder.relative_to(ROOT), ignore=ignored)
    (made / "examples" / "frameworks").mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "frameworks" / "with_openclaw.sh", made / "examples" / "frameworks")
    (made / "integrations" / "openclaw" / "node_modules").symlink_to(place / "node_modules")
    return made


def programs(gateway: Gateway) -> dict[str, str]:
    """Return variables with which `openclaw` is found."""
    folder = gateway.folder / "bin"
    folder.mkdir()
    words = " ".join(f"'{word}'" for word in gateway.program())
    (folder / "openclaw").write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    (folder / "openclaw").chmod(0o755)
    return {**gateway.env, "PATH": f"{folder}:{gateway.env['PATH']}"}


def test_the_pages_commands_install_the_plugin_and_take_it_away(bare: Gateway, clone: Path) -> None:
    (block,) = blocks("sh")
    lines = [line for line in block.splitlines() if not line.startswith("git clone")]
    text = "\n".join(lines).replace("npm install && ", "")
    text = re.sub(r"(plugins install \S+)", r"\1 --force --accept-capabilities", text)
    env = programs(bare)
    done = subprocess.run(
        ["sh", "-euc", text], cwd=clone.parent, env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr

    (line, _) = blocks("json")
    assert plugins_of(bare)["slots"] == json.loads(line)["plugins"]["slots"]
    assert plugins_of(bare)["entries"]["compactd"]["enabled"] is True
    compaction = json.loads((bare.folder / "openclaw.json").read_text())["agents"]["defaults"]["compaction"]
    assert compaction["midTurnPrecheck"] == {"enabled": True}
    shown = json.loads(bare.run("plugins", "inspect", "compactd", "--runtime", "--json"))
    assert shown["plugin"]["status"] == "loaded"
    assert "recall" in json.dumps(shown)

    bare.run("config", "set", "plugins.slots.contextEngine", "legacy")
    assert plugins_of(bare)["slots"]["contextEngine"] == "legacy"
    bare.run("plugins", "uninstall", "compactd", "--force")
    assert "compactd" not in [
        each["id"] for each in json.loads(bare.run("plugins", "list", "--json"))["plugins"]
    ]


def test_the_example_installs_it_too(bare: Gateway, clone: Path) -> None:
    example = clone / "examples" / "frameworks" / "with_openclaw.sh"
    done = subprocess.run(
        ["sh", str(example)], env=programs(bare), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The slot contextEngine has: compactd\n" in done.stdout
    assert "recall" in done.stdout


def test_the_pages_options_are_options(bare: Gateway) -> None:
    (_, text) = blocks("json")
    given = json.loads(text)["plugins"]
    manifest = json.loads((PLUGIN / "openclaw.plugin.json").read_text())
    names = set(manifest["configSchema"]["properties"])
    assert set(given["entries"]["compactd"]["config"]) == names
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == names
    configure(bare, plugins={"load": {"paths": [str(built())]}, **given})
    assert "plugins.entries.compactd.config" not in bare.run_any("config", "validate")
    given["entries"]["compactd"]["config"]["much"] = 1
    configure(bare, plugins={"load": {"paths": [str(built())]}, **given})
    assert "plugins.entries.compactd.config" in bare.run_any("config", "validate")


def test_the_version_of_the_page_is_that_of_the_tests() -> None:
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"]["openclaw"]
    tested = re.search(r'TESTED = "(.*)"', (PLUGIN / "src" / "host.ts").read_text())
    assert tested is not None
    assert tested[1] == f"openclaw {pinned}"
    assert f"Tested with {tested[1]}." in PAGE
