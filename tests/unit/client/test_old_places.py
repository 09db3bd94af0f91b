"""Old import paths of the package still work and warn with the new path."""

from __future__ import annotations

import subprocess
import sys
from subprocess import CompletedProcess

import pytest


def run(warnings: str, code: str) -> CompletedProcess[str]:
    command = [sys.executable, "-W", warnings, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("name", "thing"), [("messages", "Message"), ("errors", "SessionBusy")])
def test_an_old_import_warns_and_is_the_same_thing(name: str, thing: str) -> None:
    code = (
        f"from compactd.{name} import {thing} as old\n"
        f"from compactd.protocol.{name} import {thing} as new\n"
        "assert old is new"
    )
    done = run("default", code)
    assert done.returncode == 0, done.stderr
    moved = f"<string>:1: DeprecationWarning: compactd.{name} has moved to compactd.protocol.{name}"
    assert moved in done.stderr


def test_the_client_has_the_types_of_messages() -> None:
    code = (
        "import compactd.client as c\n"
        "print(all(hasattr(c, name) for name in c.__all__), c.Message.__module__)"
    )
    done = run("error", code)
    assert done.stdout.split() == ["True", "compactd.protocol.messages"], done.stderr
