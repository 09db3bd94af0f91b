"""What Emacs shows of hostile and long sessions, of another daemon's session, and in a flood of events."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.editors.emacs.driven import Emacs, batch
from tests.editors.stored import store_hostile, store_long
from tests.editors.terminal import same_screen, wait_for
from tests.editors.world import (
    FLOOD,
    RIGHT_TO_LEFT,
    copied_session,
    daemon_command,
    fake_daemon,
    kill_and_wait,
    make_world,
    model,
)
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback, Stall
from tests.support.talk import CHARS4, turns

pytestmark = pytest.mark.editor

SCREENS = Path(__file__).parent / "screens"


def real_daemon() -> str:
    """Return the Lisp that makes Emacs start the real daemon."""
    return f'(setq compactd-command \'({json.dumps(daemon_command())} "serve"))'


def switch(editor: Emacs, title: str) -> None:
    """Opens the session whose title begins so."""
    editor.command("compactd-switch")
    editor.terminal.see("Session:")
    editor.terminal.type(title)
    editor.terminal.press("Tab", "Enter")
    editor.until("(and (compactd-session-current) t)", "the session")


def test_hostile_titles_and_words_are_shown_as_text(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    store_hostile(world)
    with Emacs(world, real_daemon(), columns=120) as editor:
        screen = editor.terminal
        switch(editor, "<img")
        editor.command("compactd-context")
        context = screen.see("In the context: 2 entries")
        assert "<img src=x onerror=alert(1)><1b>]0;owned<07>" in context
        editor.command("compactd-work")
        screen.see("now          <9b>31m bell <07> and back<08><08><2066> [e2]")
        editor.command("compactd-chat")
        screen.see("you: RET")
        chat = editor.lisp(
            "(with-current-buffer (window-buffer) (buffer-substring-no-properties (point-min) (point-max)))"
        )
        screen.press("M-<")
        shown = screen.see("<1b>[2J<1b>[H<202e>gone %s %d")
        assert "<9b>31m" in chat
        assert "bell <07> and back<08><08><2066>" in chat
        assert RIGHT_TO_LEFT not in chat + shown
        assert "\x1b" not in shown
        title = editor.terminal._tmux("display-message", "-p", "#{pane_title}")
        assert "owned" not in title


def test_another_agents_session_is_imported_and_looked_at(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    path = copied_session(world)
    with Emacs(world, real_daemon(), columns=90, lines=24) as editor:
        editor.command("compactd-import")
        editor.terminal.see("Session file of another agent:")
        editor.terminal.type(path.name)
        editor.terminal.press("Enter")
        editor.terminal.see("compacts")
        editor.terminal.press("C-x", "1", "g")
        editor.terminal.see("In the context: ")
        same_screen(lambda: editor.terminal.screen().partition("-UUU")[0].rstrip(), SCREENS / "imported.txt")


def test_two_emacsen_on_one_session_the_second_can_only_read(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    store_hostile(world)
    append = (
        '(progn (compactd-session-request "session/append" (list :session_id "evil" :messages'
        ' (vector (list :role "user" :content (make-string 2500 ?m))))'
        ' (lambda (_) (setq seen-code "done"))'
        " (lambda (failure) (setq seen-code (plist-get failure :code)))) t)"
    )
    setup = f"{real_daemon()}(defvar seen-code nil)"
    read_only = "(if (compactd-session-read-only (compactd-session-current)) 1 0)"
    with Emacs(world, setup) as first, Emacs(world, setup) as second:
        switch(first, "<img")
        assert first.lisp(read_only) == 1
        first.lisp(append)
        assert first.until("seen-code", "the first change") == "done"
        assert first.lisp(read_only) == 0

        switch(second, "<img")
        second.said("open in another program; here it can be read")
        second.until(
            '(string-match-p "open in another program" (nth 1 (compactd-mode-line)))',
            "the words in the mode line",
        )
        before = second.used()
        second.lisp(append)
        assert second.until("seen-code", "the refusal") == 1004
        first.lisp(append)
        wait_for(lambda: second.used() > before + 100, "what the first did")
        assert "another program" not in first.messages()


def test_what_the_user_has_opened_stays_open_when_the_context_is_drawn_again(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with Daemon(world.home / "sessions") as agent, Emacs(world, real_daemon()) as editor:
        agent.call("session/start", session_id="s", title="Looked at", compaction=CHARS4)
        agent.call("session/append", session_id="s", messages=turns(6, 200))
        assert agent.call("session/compact", session_id="s", keep_recent=400)["compacted"]
        switch(editor, "Looked")
        screen = editor.terminal
        editor.command("compactd-context")
        screen.see("stands for 10 messages")
        screen.press("M-<", *6 * ["n"])
        screen.press("Tab", "Enter")

        def context() -> str:
            return str(editor.lisp("(with-current-buffer (window-buffer) (buffer-string))"))

        wait_for(lambda: "┆ e10 " in context(), "the summarised messages")
        assert "## Goal" in context()
        screen.press("M->", "p", "Tab")  # and the text of the last message
        wait_for(lambda: "\n       looked at it" in context(), "the text")
        before = context()

        # Another program goes on with the session, so the context is drawn again.
        agent.call("session/append", session_id="s", messages=[{"role": "user", "content": "said elsewhere"}])
        wait_for(lambda: "said elsewhere" in context(), "the next message")
        added = [line for line in context().splitlines() if line not in before.splitlines()]
        assert len(context().splitlines()) == len(before.splitlines()) + 1, added


HELD = "(eq t (compactd-session-held (compactd-session-current)))"


def test_looking_takes_no_lock_and_a_change_does(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with Daemon(world.home / "sessions") as agent, Emacs(world, real_daemon()) as editor:
        agent.call("session/start", session_id="s", title="Looked at", compaction=CHARS4)
        agent.call("session/append", session_id="s", messages=turns(6, 200))
        agent.call("session/close", session_id="s")
        switch(editor, "Looked")
        editor.command("compactd-context")
        editor.terminal.see("In the context: 12 entries")
        assert "another program" not in editor.lisp("(nth 1 (compactd-mode-line))")

        # An agent goes on with its session; the editor shows that, and says who has it.
        assert agent.call("session/start", session_id="s")["read_only"] is False
        agent.call("session/append", session_id="s", messages=[{"role": "user", "content": "said elsewhere"}])
        editor.terminal.see("In the context: 13 entries")
        editor.until(HELD, "the other program")
        compact = "(progn (compactd-compact nil 2 t) t)"
        editor.lisp(compact)
        editor.said(f"process {agent.process.pid}): close it there")

        # The agent lets go: now the editor can.
        agent.call("session/close", session_id="s")
        editor.until(f"(not {HELD})", "the end of the other program")
        editor.lisp(compact)
        editor.said("✓ Compacted")
        editor.terminal.see("stands for")

        # After a restart it is open in the same mode: the lock is the editor's again.
        kill_and_wait(editor.pid())
        editor.said("1 session resumed")
        assert agent.call("session/start", session_id="s")["read_only"] is True


def test_a_chat_that_is_looked_at_follows_and_survives_a_restart_without_the_lock(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with Loopback([Answer(text="Answered here.")]) as provider, Daemon(world.home / "sessions") as agent:
        agent.call("session/start", session_id="s", title="Talked about", model=model(provider.base_url))
        agent.call("session/append", session_id="s", messages=[{"role": "user", "content": "first word"}])
        agent.call("session/close", session_id="s")
        address = f'(setq compactd-environment \'("OPENAI_BASE_URL={provider.base_url}/v1"))'
        with Emacs(world, real_daemon() + address) as editor:
            switch(editor, "Talked")
            editor.command("compactd-chat")
            editor.terminal.see("first word")

            kill_and_wait(editor.pid())
            editor.said("1 session resumed")
            assert agent.call("session/start", session_id="s")["read_only"] is False
            agent.call(
                "session/append", session_id="s", messages=[{"role": "assistant", "content": "second word"}]
            )
            editor.terminal.see("second word")
            agent.call("session/close", session_id="s")
            editor.until(f"(not {HELD})", "the end of the other program")

            editor.terminal.type("And then?")
            editor.terminal.press("Enter")
            shown = editor.terminal.see("Answered here.")
            assert [shown.count(each) for each in ("first word", "second word", "› And then?")] == [1, 1, 1]

            # Deleted elsewhere: it is gone here, too.
            editor.idle()
            closed = '(progn (compactd-request "session/close" (list :session_id "s") #\'ignore) t)'
            editor.lisp(closed)
            editor.until("(null (compactd-session-current))", "the close")
            switch(editor, "Talked")
            agent.call("session/delete", session_id="s")
            editor.said("was deleted by another program")
            editor.until("(null (compactd-session-current))", "the deletion")


def test_five_thousand_entries_open_at_once(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    store_long(world, 5_000)

    done = batch(
        world,
        f"""(require 'compactd-commands)(require 'compactd-context){real_daemon()}
        (defun until (look)
          (let ((end (+ (float-time) 100)))
            (while (and (not (funcall look)) (< (float-time) end)) (accept-process-output nil 0.001))))
        (defun shown () (with-current-buffer (window-buffer) (count-lines (point-min) (point-max))))
        (compactd-session-start "long" "long" #'ignore)
        (until #'compactd-session-current)
        (accept-process-output nil 0.3)
        (let ((at (float-time)))
          (compactd-context)
          (until (lambda () (with-current-buffer (window-buffer) (derived-mode-p 'compactd-context-mode))))
          (princ (format "OPEN %.0f ms, %d lines\n" (* 1e3 (- (float-time) at)) (shown)))
          (until (lambda () (>= (shown) 5006)))
          (princ (format "WHOLE %.0f ms, %d lines, %s" (* 1e3 (- (float-time) at)) (shown)
                         (with-current-buffer (window-buffer)
                           (buffer-substring (progn (goto-char (point-max)) (line-beginning-position 0))
                                             (point-max))))))""",
    )

    found = re.search(r"OPEN (\d+) ms, (\d+) lines", done.stdout)
    assert found, done.stdout + done.stderr
    whole = re.search(r"WHOLE \d+ ms, (\d+) lines, (.*)", done.stdout)
    assert whole, done.stdout + done.stderr
    print(found.group(), whole.group()[:60])
    assert int(found[2]) < 1_000, "a screen of them is shown before all of them are there"
    assert int(whole[1]) == 5_006
    assert whole[2].startswith("e5000 ")


def test_a_compaction_that_runs_is_shown_and_can_be_taken_back(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with Loopback([Stall(text="## Goal")]) as provider:
        parts = " ".join(f":{name} {json.dumps(value)}" for name, value in model(provider.base_url).items())
        done = batch(
            world,
            f"""(require 'compactd-commands){real_daemon()}
            (setq compactd-model '({parts}) compactd-trace t
                  compactd-environment '("OPENAI_BASE_URL={provider.base_url}/v1")
                  compactd-compaction '(:strategy "summarize" :model "openai-chat/gpt-4o"))
            (defvar done nil)
            (defun until (look)
              (let ((end (+ (float-time) 100)))
                (while (and (not (funcall look)) (< (float-time) end)) (accept-process-output nil 0.005))))
            (compactd-start "")
            (until #'compactd-session-current)
            (compactd-request
             "session/append"
             (list :session_id compactd-current-id
                   :messages (vconcat (mapcar (lambda (n)
                                                (list :role (if (zerop (% n 2)) "user" "assistant")
                                                      :content (make-string 2000 (+ ?a n))))
                                              (number-sequence 0 11))))
             (lambda (_) (setq done t)))
            (until (lambda () done))
            (compactd-compact nil 2 t)
            (until (lambda () (eql 0.1 (compactd-session-compacting (compactd-session-current)))))
            (princ (concat "SHOWN " (compactd-gauge-short (compactd-session-current)) "\n"))
            (compactd-abort)
            (until (lambda () (null (compactd-session-compacting (compactd-session-current)))))
            ;; What the daemon answers to this comes after what it says of the compaction.
            (setq done nil)
            (compactd-request "daemon/ping" nil (lambda (_) (setq done t)))
            (until (lambda () done))
            (princ (format "COUNT %d\n" (compactd-session-message-count (compactd-session-current))))
            (princ (with-current-buffer (compactd-log-buffer) (buffer-string)))""",
        )

    assert "SHOWN ◔ compacting 10 %" in done.stdout, done.stdout + done.stderr
    assert "COUNT 12" in done.stdout
    assert "the compaction was cancelled; nothing was changed" in done.stderr
    assert "→      (:id" in done.stdout, "the wire is traced"


def test_a_flood_of_events_comes_to_the_screen_in_few_pieces_and_leaves_time_to_type(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    flood = fake_daemon(tmp_path, FLOOD)

    done = batch(
        world,
        f"""(require 'compactd-commands)(setq compactd-command '({json.dumps(str(flood))}))
        (defvar told 0) (defvar gaps nil) (defvar last nil) (defvar done nil)
        (defun until (look)
          (let ((end (+ (float-time) 100)))
            (while (and (not (funcall look)) (< (float-time) end))
              (let ((at (float-time)))
                (accept-process-output nil 0.002)
                (push (* 1e3 (- (float-time) at)) gaps)))))
        (compactd-start "")
        (until #'compactd-session-current)
        (accept-process-output nil 0.2)
        (add-hook 'compactd-event-functions
                  (lambda (_session event)
                    (when (equal (plist-get event :type) "changed") (setq told (1+ told)))))
        (setq gaps nil)
        (let ((at (float-time)))
          (compactd-request "session/undo" (list :session_id "s") (lambda (_) (setq done t)))
          (until (lambda () done))
          (setq gaps (sort gaps #'<))
          (princ (format "FLOOD %.0f %d %.1f %.1f" (* 1e3 (- (float-time) at)) told
                         (nth (/ (length gaps) 2) gaps) (nth (/ (* 99 (length gaps)) 100) gaps))))""",
    )

    found = re.search(r"FLOOD (\d+) (\d+) ([\d.]+) ([\d.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    print(found.group())
    took_ms, told, median_ms = float(found[1]), int(found[2]), float(found[3])
    assert told <= took_ms / 40 + 3
    # How quick it is stands above; a machine that is busy elsewhere must not fail it.
    assert median_ms < 250


def test_the_menu_and_the_gauge_are_there(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with Emacs(world, real_daemon()) as editor:
        editor.command("compactd-start")
        editor.terminal.see("Title")
        editor.terminal.type("the cache")
        editor.terminal.press("Enter")
        editor.until("(and (compactd-session-current) t)", "the session")
        editor.command("compactd")
        menu = editor.terminal.see("stop the answer")
        assert "the cache" in menu
        assert "◔ ~0 %?" in menu
        editor.terminal.press("g")
        editor.terminal.see("guess")
        editor.command("compactd-health")
        editor.terminal.see("OK       native JSON")
