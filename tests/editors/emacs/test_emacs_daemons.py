"""Missing or faulty daemons: Emacs shows a message that says what to do, never an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.editors.emacs.driven import batch
from tests.editors.world import BAD_DAEMONS, World, daemon_command, fake_daemon, make_world

pytestmark = pytest.mark.editor

START = """
(require 'compactd-commands)
(require 'json)
SETUP
(defvar told nil)
(advice-add 'message :before
            (lambda (format &rest args)
              (when format (setq told (append told (list (apply #'format format args)))))))
(defun until (look)
  (let ((end (+ (float-time) 100)))
    (while (and (not (funcall look)) (< (float-time) end))
      (accept-process-output nil 0.01))))
(defun ours () (seq-filter (lambda (text) (string-prefix-p "compactd:" text)) told))
(compactd-session-start nil nil (lambda (_session) nil))
(until (lambda () (or (ours) (compactd-session-current))))
(accept-process-output nil 0.2)
REST
(princ (concat "TOLD" (json-encode
  (list :told (vconcat (ours))
        :state (and (compactd-session-current) t)
        :read_only (and (compactd-session-current) (compactd-session-read-only (compactd-session-current)))
        :status compactd-daemon-status
        :log (with-current-buffer (compactd-log-buffer) (buffer-string))))))
"""


def told(world: World, setup: str, rest: str = "") -> dict[str, Any]:
    """Return the message that the user sees with a daemon as `setup` says, and what else was seen."""
    done = batch(world, START.replace("SETUP", setup).replace("REST", rest))
    assert "TOLD" in done.stdout, done.stderr + done.stdout
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.partition("TOLD")[2]))


def command(*words: object) -> str:
    """The setting that names the daemon."""
    return f"(setq compactd-command '({' '.join(json.dumps(str(word)) for word in words)}))"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("garbage", "no message of the protocol"),
        ("hangs", "did not answer within"),
        ("ends", "ended with code 3"),
        ("old", "pipx upgrade compactd"),
        ("stranger", "is no compactd"),
    ],
)
def test_a_bad_daemon_is_named(tmp_path: Path, kind: str, said: str) -> None:
    world = make_world(tmp_path)
    bad = fake_daemon(tmp_path, BAD_DAEMONS[kind])
    patience = "0.5" if kind == "hangs" else "60"

    seen = told(world, f"{command(bad)}(setq compactd-start-timeout {patience})")

    assert len(seen["told"]) == 1, seen
    assert said in seen["told"][0]
    assert seen["status"] == "failed"
    assert seen["state"] is None
    if kind == "ends":
        assert "cannot begin: no such thing" in seen["log"]


def test_a_daemon_that_is_not_there_is_named_by_the_setting(tmp_path: Path) -> None:
    seen = told(make_world(tmp_path), command("/nowhere/compactd", "serve"))

    assert seen["told"] == ["compactd: the daemon of `compactd-command' cannot be run: /nowhere/compactd"]


def test_without_any_daemon_the_person_is_told_how_to_get_one(tmp_path: Path) -> None:
    seen = told(make_world(tmp_path), '(setq exec-path \'("/nowhere"))')

    assert "pipx install git+https://example.org/compactd/compactd" in seen["told"][0]


def test_a_daemon_that_prints_to_stderr_works_and_its_words_are_in_the_log(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    loud = tmp_path / "loud daemon"
    loud.write_text(f"#!/bin/sh\necho 'deprecated: everything' >&2\nexec {daemon_command()} \"$@\"\n")
    loud.chmod(0o755)

    seen = told(world, command(loud, "serve"))

    assert (seen["told"], seen["state"]) == ([], True)
    assert "stderr deprecated: everything" in seen["log"]


def test_a_daemon_that_dies_again_and_again_is_left_alone_in_the_end(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    rest = """
    (dotimes (_ 3)
      (let ((before (length (ours))))
        (signal-process (compactd-daemon-pid) 'SIGKILL)
        (until (lambda () (> (length (ours)) before)))))
    """

    seen = told(
        world,
        f"{command(daemon_command(), 'serve')}(setq compactd-restarts 2 compactd-restart-delay 0.01)",
        rest,
    )

    assert seen["status"] == "failed"
    assert "and is left alone" in seen["told"][-1]
    assert ["1 session resumed" in each for each in seen["told"]] == [True, True, False]


@pytest.mark.parametrize("name", ["with spaces", "100% ünïcödé 漢字", "per%20cent", "-dash"])
def test_a_workspace_of_any_name_works(tmp_path: Path, name: str) -> None:
    world = make_world(tmp_path, workspace=name)

    seen = told(world, command(daemon_command(), "serve"))

    assert (seen["told"], seen["state"], seen["read_only"]) == ([], True, None)


LOOK = """
(require 'compactd-finding)
(setq asked 0 answer nil)
(setq noninteractive nil custom-file CUSTOM)
(fset 'y-or-n-p (lambda (_) (setq asked (1+ asked)) answer))
(defun look (in-batch)
  (let ((default-directory "INNER/") (noninteractive in-batch))
    (princ (format "%s %s %s\\n" (mapcar (lambda (place) (list (car place) (and (consp (nth 2 place)) t)))
                                        (compactd-daemon-places))
                   (cadr (compactd-daemon-choose (compactd-daemon-places))) asked))))
(look t)
(look nil)
(look nil)
(setq compactd-daemon--distrusted nil answer t)
(look nil)
(look nil)
(look t)
(with-temp-file "OWN" (insert "#!/bin/sh\\nexit\\n"))
(look t)
(setq noninteractive t)
"""


def test_the_projects_own_daemon_is_run_once_the_person_said_yes_and_until_it_changes(
    tmp_path: Path,
) -> None:
    world = make_world(tmp_path)
    (world.workspace / ".git").mkdir()
    inner = world.workspace / "a" / "b"
    inner.mkdir(parents=True)
    own = world.workspace / ".venv" / "bin" / "compactd"
    own.parent.mkdir(parents=True)
    own.write_text(f'#!/bin/sh\nexec {daemon_command()} "$@"\n')
    own.chmod(0o755)
    above = tmp_path / "venv" / "bin"
    above.mkdir(parents=True)
    (above / "compactd").symlink_to(daemon_command())
    custom = json.dumps(str(world.home / "custom.el"))

    done = batch(world, LOOK.replace("INNER", str(inner)).replace("OWN", str(own)).replace("CUSTOM", custom))

    no, yes = "((bundled nil) (project nil) (PATH t))", "((bundled nil) (project t) (PATH t))"
    assert done.stdout.splitlines() == [
        f"{no} {daemon_command()} 0",
        f"{no} {daemon_command()} 1",
        f"{no} {daemon_command()} 1",
        f"{no} {own} 2",
        f"{yes} {own} 2",
        f"{yes} {own} 2",
        f"{no} {daemon_command()} 2",
    ], done.stderr
