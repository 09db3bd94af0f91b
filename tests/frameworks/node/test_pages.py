from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.environment import ROOT, variables
from tests.frameworks.node.driving import built, node, packages

PAGES = ("openai-agents-node", "ai-sdk")
EXAMPLES = ("with_openai_agents", "with_ai_sdk")
BLOCK = re.compile(r"^```ts\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_the_page_has_the_right_types(page: str, tmp_path: Path) -> None:
    """The compiler knows the frameworks' own types, and those of the package."""
    place = packages()
    assert place is not None
    (tmp_path / "node_modules").symlink_to(built() / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    blocks = BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text("utf-8"))
    assert blocks
    for number, block in enumerate(blocks):
        (tmp_path / f"block{number}.ts").write_text(block)
    compiler = place / "node_modules" / "typescript" / "bin" / "tsc"
    options = ("--noEmit", "--strict", "--skipLibCheck", "--types", "node")
    target = ("--module", "nodenext", "--target", "es2022")
    done = subprocess.run(
        [node(), str(compiler), *options, *target, *(f"block{at}.ts" for at in range(len(blocks)))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""
    assert done.returncode == 0


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs_without_a_network(example: str, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "compactd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m compactd "$@"\n')
    program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / "node_modules").symlink_to(built() / "node_modules")
    shutil.copy(ROOT / "examples" / "frameworks" / f"{example}.mjs", work)
    env = {
        **variables(),
        "COMPACTD_HOME": str(tmp_path / "data"),
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [node(), f"{example}.mjs"], cwd=work, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "The seal code of part 2 is K-10634." in done.stdout
    assert "32" in done.stdout
    assert done.stderr == ""
