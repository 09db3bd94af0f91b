"""The extension's modules that need no editor, tested by node's own test runner."""

from __future__ import annotations

import subprocess

import pytest

from tests.editors.vscode.house import HERE, node

pytestmark = pytest.mark.editor


def test_the_units_of_the_extension_hold() -> None:
    files = sorted(str(each) for each in HERE.glob("unit/*.test.ts"))

    done = subprocess.run(
        [node(), "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--test", *files],
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert len(files) >= 5
    assert done.returncode == 0, done.stdout + done.stderr
