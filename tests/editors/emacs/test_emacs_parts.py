"""The Emacs package: its functions, checks by byte-compiler and linters, and its normal installation."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.emacs.driven import INSTALL, batch, parts
from tests.editors.terminal import program
from tests.editors.world import EDITORS, ROOT, World, daemon_command, make_world

pytestmark = pytest.mark.editor

FILES = sorted(path.name for path in (EDITORS / "emacs").glob("*.el"))
LINT = sorted(Path("/usr/share/emacs/site-lisp/elpa-src").glob("package-lint-*"))
BESIDE = sorted(Path("/usr/share/emacs/site-lisp/elpa-src").glob("let-alist-*"))


def copied(world: World) -> Path:
    """The package's files, where compiling leaves nothing behind in the checkout."""
    folder = world.home / "package"
    shutil.copytree(EDITORS / "emacs", folder, ignore=shutil.ignore_patterns("*.elc", "__pycache__"))
    return folder


def emacs(folder: Path, *arguments: str, world: World) -> subprocess.CompletedProcess[str]:
    """Emacs in batch, in `folder`."""
    return subprocess.run(
        [program("emacs", install=INSTALL), "-Q", "--batch", "-L", ".", *arguments],
        cwd=folder, env=world.env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_the_parts_do_what_they_say(tmp_path: Path) -> None:
    world = make_world(tmp_path)

    done = batch(
        world,
        f'(setenv "COMPACTD_MANUAL" "{ROOT / "docs" / "emacs.md"}")\n'
        f'(load "{parts()}" nil t)\n(ert-run-tests-batch-and-exit)',
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"Ran (\d+) tests, (\d+) results as expected, 0 unexpected", done.stdout + done.stderr)
    assert found, done.stderr
    assert found[1] == found[2]


def test_it_compiles_without_a_warning(tmp_path: Path) -> None:
    world = make_world(tmp_path)

    done = emacs(
        copied(world),
        "--eval",
        "(setq byte-compile-error-on-warn t)",
        "-f",
        "batch-byte-compile",
        *FILES,
        world=world,
    )

    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def test_checkdoc_has_nothing_to_say(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    forms = "".join(f'(checkdoc-file "{name}")' for name in FILES)

    done = emacs(copied(world), "--eval", f"(progn {forms})", world=world)

    assert (done.returncode, done.stderr.strip()) == (0, "")


@pytest.mark.skipif(not LINT, reason="package-lint is not here (Debian: elpa-package-lint)")
def test_package_lint_has_nothing_to_say(tmp_path: Path) -> None:
    world = make_world(tmp_path)

    done = emacs(
        copied(world), "-L", str(BESIDE[-1]), "-L", str(LINT[-1]), "-l", "package-lint",
        "--eval", '(setq package-lint-main-file "compactd.el")', "-f", "package-lint-batch-and-exit", *FILES,
        world=world,
    )  # fmt: skip

    # The version of Debian 12 is older than Emacs 28, and takes it for one that is not released.
    old = "uninstallable in all released Emacs versions"
    said = [line for line in (done.stdout + done.stderr).splitlines() if ": " in line and old not in line]
    assert [line for line in said if "warning" in line or "error" in line] == []


def test_the_built_package_installs_the_ordinary_way_with_its_manual(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    built = subprocess.run(
        [sys.executable, str(EDITORS / "emacs" / "build.py"), str(tmp_path / "dist")],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip

    install = subprocess.run(
        [program("emacs", install=INSTALL), "--batch", "--eval",
         f'(progn (require \'package) (package-initialize) (package-install-file "{built}"))'],
        cwd=world.workspace, env=world.env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert install.returncode == 0, install.stderr
    used = subprocess.run(
        [program("emacs", install=INSTALL), "--batch", "--eval",
         "(progn (require 'package) (package-initialize)"
         " (princ (list (autoloadp (symbol-function 'compactd-chat)) (featurep 'compactd)))"
         " (require 'info) (info \"(compactd)Commands\") (princ (buffer-string)) (compactd-health))"],
        cwd=world.workspace, env=world.env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert used.stdout.startswith("(t nil)"), used.stdout + used.stderr
    assert "compactd-undo" in used.stdout
    assert f"OK       PATH: {daemon_command()}" in used.stdout
    assert "protocol 1.0, pid " in used.stdout


def test_the_health_check_says_what_to_do_where_no_daemon_is(tmp_path: Path) -> None:
    done = batch(
        make_world(tmp_path),
        "(require 'compactd)(require 'compactd-commands)(setq exec-path '(\"/nowhere\"))(compactd-health)",
    )

    assert re.search(r"OK +Emacs (2[89]|[3-9]\d)", done.stdout), done.stdout
    assert "ERROR    no daemon was found" in done.stdout
    assert "pipx install git+https://example.org/compactd/compactd" in done.stdout


def test_loading_does_no_work(tmp_path: Path) -> None:
    done = batch(
        make_world(tmp_path),
        "(let ((at (float-time)) (before (length (process-list))))"
        " (require 'compactd) (compactd-mode 1)"
        ' (princ (format "%.0f ms, %d processes, %s" (* 1e3 (- (float-time) at))'
        " (- (length (process-list)) before) (featurep 'compactd-daemon))))",
    )

    print(done.stdout)
    assert "0 processes, nil" in done.stdout


def test_registration_takes_no_time_and_the_first_gauge_comes_soon(tmp_path: Path) -> None:
    world = make_world(tmp_path)

    done = batch(
        world,
        f"""(defvar at (float-time))
        (defun took () (prog1 (* 1e3 (- (float-time) at)) (setq at (float-time))))
        (require 'compactd) (compactd-mode 1)
        (princ (format "registered %.1f " (took)))
        (require 'compactd-commands)
        (princ (format "loaded %.1f " (took)))
        (setq compactd-command '({json.dumps(daemon_command())} "serve"))
        (compactd-start "")
        (let ((end (+ (float-time) 100)))
          (while (and (null (compactd-mode-line)) (< (float-time) end)) (accept-process-output nil 0.001)))
        (princ (format "gauge %.0f" (took)))""",
    )

    times = dict(re.findall(r"(registered|loaded|gauge) ([\d.]+)", done.stdout))
    print(f"milliseconds, the daemon's start in the gauge's: {times}")
    assert float(times["registered"]) < 250
    assert float(times["gauge"]) < 60_000
