;;; compactd-menu.el --- The commands as a menu -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Where transient is there; `compactd' asks by name elsewhere.

;;; Code:

(require 'transient)
(require 'compactd-session)

(declare-function compactd-abort "compactd-commands")
(declare-function compactd-chat "compactd-commands")
(declare-function compactd-compact "compactd-commands")
(declare-function compactd-context "compactd-commands")
(declare-function compactd-gauge "compactd-commands")
(declare-function compactd-health "compactd-health")
(declare-function compactd-import "compactd-commands")
(declare-function compactd-log "compactd-commands")
(declare-function compactd-model "compactd-commands")
(declare-function compactd-redo "compactd-commands")
(declare-function compactd-restart "compactd-commands")
(declare-function compactd-search "compactd-commands")
(declare-function compactd-start "compactd-commands")
(declare-function compactd-switch "compactd-commands")
(declare-function compactd-undo "compactd-commands")
(declare-function compactd-work "compactd-commands")

(defun compactd-menu--gauge ()
  "Return the gauge of the current session, for the menu's head."
  (let ((session (compactd-session-current)))
    (if session
        (concat (compactd-text-line (compactd-session-title session) 40) "  "
                (compactd-gauge-short session))
      "compactd: no session yet")))

;;;###autoload (autoload 'compactd-menu "compactd-menu" nil t)
(transient-define-prefix compactd-menu ()
  "What can be done with the session."
  [:description compactd-menu--gauge
   ["Look"
    ("g" "gauge" compactd-gauge)
    ("x" "context" compactd-context)
    ("w" "work" compactd-work)
    ("s" "search" compactd-search)]
   ["Compact"
    ("c" "compact" compactd-compact)
    ("u" "undo" compactd-undo)
    ("r" "redo" compactd-redo)]
   ["Session"
    ("t" "chat" compactd-chat)
    ("k" "stop the answer" compactd-abort)
    ("o" "open another" compactd-switch)
    ("n" "new" compactd-start)
    ("i" "import a file" compactd-import)
    ("m" "model" compactd-model)]
   ["Daemon"
    ("h" "health" compactd-health)
    ("l" "log" compactd-log)
    ("R" "restart" compactd-restart)]])

(provide 'compactd-menu)
;;; compactd-menu.el ends here
