;;; compactd-commands.el --- What can be done -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Each command acts on the current session; where there is none, a new one.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'compactd-session)
(require 'compactd-tools)

(declare-function compactd-chat-show "compactd-chat")
(declare-function compactd-context-show "compactd-context")
(declare-function compactd-context-read-entry "compactd-context")
(declare-function compactd-preview-show "compactd-preview")
(declare-function compactd-preview-run "compactd-preview")
(declare-function compactd-menu "compactd-menu")
(declare-function compactd-work-show "compactd-work")

;;;###autoload
(defun compactd ()
  "Offer everything that can be done."
  (interactive)
  (if (require 'compactd-menu nil t)
      (compactd-menu)
    (let* ((names '("abort" "chat" "compact" "context" "gauge" "health" "import" "log"
                    "model" "redo" "restart" "search" "start" "switch" "undo"
                    "work"))
           (name (completing-read "compactd: " names nil t)))
      (call-interactively (intern (concat "compactd-" name))))))

;;;###autoload
(defun compactd-start (title)
  "Begin a new session of TITLE."
  (interactive (list (read-string "Title (may be empty): ")))
  (compactd-session-start
   nil (and (not (string-blank-p title)) title)
   (lambda (session)
     (message "compactd: session %s, %s" (compactd-session-id session)
              (compactd-text-clean (or (compactd-session-model session) "no model"))))))

;;;###autoload
(defun compactd-gauge ()
  "Say how full the context is, and where the numbers are from."
  (interactive)
  (compactd-session-with
   (lambda (session)
     (message "%s" (string-join (compactd-gauge-long session) "\n")))))

;;;###autoload
(defun compactd-context ()
  "Show what is in the context, and what was summarised."
  (interactive)
  (require 'compactd-context)
  (compactd-session-with #'compactd-context-show))

;;;###autoload
(defun compactd-work ()
  "Show where the work stands: plan, changed files, errors, decisions."
  (interactive)
  (require 'compactd-work)
  (compactd-session-with #'compactd-work-show))

;;;###autoload
(defun compactd-chat ()
  "Show the conversation with the session's model."
  (interactive)
  (require 'compactd-chat)
  (compactd-session-with #'compactd-chat-show))

;;;###autoload
(defun compactd-compact (focus keep &optional at-once)
  "Compact after a preview, the summary looking at FOCUS most.
KEEP of the newest messages stay word for word; nil: as the daemon's
settings say.  With a prefix argument, or AT-ONCE, without the preview."
  (interactive
   (list (read-string "Focus of the summary (may be empty): ")
         (let ((keep (read-string "Messages to keep (may be empty): ")))
           (and (string-match-p "\\`[1-9][0-9]*\\'" keep) (string-to-number keep)))
         current-prefix-arg))
  (require 'compactd-preview)
  (let ((focus (and focus (not (string-blank-p focus)) focus)))
    (compactd-session-with
     (lambda (session)
       (if at-once
           (compactd-preview-run session focus keep)
         (compactd-preview-show session focus keep))))))

(defun compactd--rewind (method verb)
  "Ask METHOD of the current session, and say VERB."
  (compactd-session-with
   (lambda (session)
     (compactd-session-request
      method (list :session_id (compactd-session-id session))
      (lambda (result)
        (compactd-session-refresh (compactd-session-id session))
        (message "compactd: %s; %s, %s tokens" verb
                 (compactd-text-count (plist-get result :message_count) "message")
                 (compactd-text-number (plist-get (plist-get result :token_usage)
                                                  :current_context_tokens))))))))

;;;###autoload
(defun compactd-undo ()
  "Take the last compaction back."
  (interactive)
  (compactd--rewind "session/undo" "taken back"))

;;;###autoload
(defun compactd-redo ()
  "Put the compaction that was taken back in force again."
  (interactive)
  (compactd--rewind "session/redo" "in force again"))

(defun compactd--choose (prompt items label act)
  "Let the person choose one of ITEMS by its LABEL with PROMPT; call ACT with it."
  (let* ((table (make-hash-table :test #'equal))
         (names (seq-map (lambda (item)
                           (let ((name (funcall label item)))
                             (while (gethash name table)
                               (setq name (concat name " ")))
                             (puthash name item table)
                             name))
                         items))
         (chosen (completing-read
                  prompt
                  (lambda (string predicate action)
                    (if (eq action 'metadata)
                        '(metadata (display-sort-function . identity))
                      (complete-with-action action names string predicate)))
                  nil t)))
    (when (gethash chosen table)
      (funcall act (gethash chosen table)))))

(defun compactd--later (act)
  "Call ACT outside of the daemon's filter, where the person may be asked."
  (run-at-time 0 nil act))

;;;###autoload
(defun compactd-switch ()
  "Open another session."
  (interactive)
  (compactd-request
   "session/list" nil
   (lambda (result)
     (if (seq-empty-p (plist-get result :sessions))
         (message "compactd: there is no session yet; M-x compactd-chat begins one")
       (compactd--later
        (lambda ()
          (compactd--choose
           "Session: " (plist-get result :sessions)
           (lambda (info)
             (format "%s  %s, %s, %s"
                     (compactd-text-line (or (plist-get info :title)
                                             (plist-get info :session_id))
                                         50)
                     (compactd-text-count (plist-get info :message_count) "message")
                     (compactd-text-clean (or (plist-get info :model) "no model"))
                     (compactd-text-ago (plist-get info :updated_at))))
           (lambda (info)
             (compactd-session-start
              (plist-get info :session_id) (plist-get info :title)
              (lambda (session)
                (message "compactd: %s, %s"
                         (compactd-text-line (compactd-session-title session) 50)
                         (compactd-gauge-short session))))))))))))

;;;###autoload
(defun compactd-search (query)
  "Search QUERY in all that was ever said in this session."
  (interactive (list (read-string "Search: ")))
  (require 'compactd-context)
  (compactd-session-with
   (lambda (session)
     (let ((id (compactd-session-id session)))
       (compactd-request
        "session/search" (list :session_id id :query query :limit 100)
        (lambda (result)
          (if (seq-empty-p (plist-get result :hits))
              (message "compactd: nothing in this session says %s"
                       (compactd-text-line query 40))
            (compactd--later
             (lambda ()
               (compactd--choose
                (format "%s: " (compactd-text-count (length (plist-get result :hits)) "hit"))
                (plist-get result :hits)
                (lambda (hit)
                  (format "%-6s %-9s %-10s %s"
                          (compactd-text-clean (plist-get hit :entry_id))
                          (plist-get hit :role)
                          (if (eq t (plist-get hit :in_context)) "in context" "summarised")
                          (compactd-text-line (plist-get hit :snippet) 70)))
                (lambda (hit)
                  (compactd-context-read-entry id (plist-get hit :entry_id)))))))))))))

;;;###autoload
(defun compactd-import (file)
  "Open the session FILE of another agent, to look at and to go on with."
  (interactive "fSession file of another agent: ")
  (require 'compactd-context)
  (compactd-request
   "session/import" (list :path (expand-file-name file))
   (lambda (imported)
     (seq-doseq (warning (plist-get imported :warnings))
       (compactd-log-add "daemon" warning))
     (compactd-session-start
      (plist-get imported :session_id) (file-name-nondirectory file)
      (lambda (session)
        (message "compactd: %s of %s"
                 (compactd-text-count (plist-get imported :message_count) "message")
                 (plist-get imported :format))
        (compactd-context-show session))
      nil t))))

;;;###autoload
(defun compactd-model (model)
  "Let MODEL, as provider/id, answer in this session from now on."
  (interactive (list (read-string "Model (provider/id): ")))
  (compactd-session-with
   (lambda (session)
     (compactd-session-request
      "model/set" (list :session_id (compactd-session-id session) :model model)
      (lambda (result)
        (compactd-session-refresh (compactd-session-id session))
        (message "compactd: %s" (compactd-text-clean (or (plist-get result :model) model))))))))

;;;###autoload
(defun compactd-abort ()
  "Stop the present compaction, else the answer that is coming."
  (interactive)
  (compactd-session-with
   (lambda (session)
     (unless (and (compactd-session-compacting session)
                  (compactd-daemon-cancel-compaction))
       (compactd-request "agent/abort" (list :session_id (compactd-session-id session))
                         #'ignore)))))

;;;###autoload
(defun compactd-log ()
  "Show what happened: the daemon's life, its messages, the wire where traced."
  (interactive)
  (pop-to-buffer (compactd-log-buffer))
  (goto-char (point-max)))

;;;###autoload
(defun compactd-restart ()
  "Restart the daemon; sessions are opened again."
  (interactive)
  (compactd-daemon-restart
   (lambda (problem)
     (message "compactd: %s" (or problem "the daemon was restarted")))))

(provide 'compactd-commands)
;;; compactd-commands.el ends here
