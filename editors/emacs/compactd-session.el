;;; compactd-session.el --- Sessions that are open here -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; As `agent/event' and `agent/state' tell them; and the gauge.

;;; Code:

(require 'cl-lib)
(require 'compactd-daemon)
(require 'compactd-protocol)
(require 'compactd-text)

(defcustom compactd-model nil
  "The model of new sessions.
A text \"provider/id\", or a property list of :provider, :id and :base_url."
  :group 'compactd
  :type '(choice (const :tag "None" nil) string
                 (plist :key-type symbol :value-type string)))

(defcustom compactd-system-prompt nil
  "What new sessions tell the model first."
  :group 'compactd
  :type '(choice (const :tag "Nothing" nil) string))

(defcustom compactd-coalesce 0.04
  "Seconds that events are collected before the screen shows them."
  :group 'compactd
  :type 'number)

(defcustom compactd-icon "◔"
  "In front of the gauge."
  :group 'compactd
  :type 'string)

(defcustom compactd-session-functions nil
  "Called with each session that is opened here."
  :group 'compactd
  :type 'hook)

(defcustom compactd-compacted-functions nil
  "Called with the session and the result after each compaction."
  :group 'compactd
  :type 'hook)

(defvar compactd-event-functions nil
  "Called with a session and the properties of each of its events.
Parts of answers come together, a screen's worth at once.  Besides the
daemon's there are the types \"changed\", \"gone\" and \"resumed\".")

(defface compactd-due '((t :inherit warning)) "A compaction is due, or a guess."
  :group 'compactd)
(defface compactd-over '((t :inherit error)) "More than the model takes, or failed."
  :group 'compactd)
(defface compactd-head '((t :inherit bold)) "Headings." :group 'compactd)
(defface compactd-faint '((t :inherit shadow)) "What is less important." :group 'compactd)
(defface compactd-summary '((t :inherit font-lock-keyword-face)) "Summaries."
  :group 'compactd)
(defface compactd-pinned '((t :inherit font-lock-constant-face)) "Pinned messages."
  :group 'compactd)

(cl-defstruct (compactd-session (:constructor compactd-session-create))
  "A session that is open here.
READ-ONLY: it is only looked at, and `compactd-session-request' takes it
before the first change.  HELD: t if another program has it open for
writing, `unknown' before the daemon said so."
  id title model usage (message-count 0) read-only (held 'unknown)
  (status "idle") compacting (seq 0))

(defvar compactd-sessions (make-hash-table :test #'equal)
  "The sessions that are open here, by id.")

(defvar compactd-current-id nil
  "The id of the session that commands mean.")

(defvar compactd-session--deltas nil
  "Parts of answers not yet told, newest first: (ID TYPE . TEXTS).")
(defvar compactd-session--changed nil)
(defvar compactd-session--stale nil
  "Ids of the sessions of which the daemon's own account is asked for.")
(defvar compactd-session--timer nil)

(defvar compactd-tools-schemas)
(declare-function compactd-tools-execute "compactd-tools")

(defun compactd-session-current ()
  "Return the session that commands mean, or nil."
  (gethash compactd-current-id compactd-sessions))

(defun compactd-session-usage-of (session name)
  "Return NAME, a keyword, of the usage of SESSION."
  (plist-get (compactd-session-usage session) name))

(defun compactd-session-kind (session)
  "Return whether SESSION `fits', a compaction is `due', or it is `over'."
  (intern (or (compactd-session-usage-of session :decision) "fits")))

(defun compactd-session--hand-on (session event)
  "Tell everybody of EVENT of SESSION."
  (dolist (function (copy-sequence compactd-event-functions))
    (condition-case problem
        (funcall function session event)
      (error (compactd-log-add "life" (format "a view failed: %S" problem))))))

(defun compactd-session--flush-deltas ()
  "Tell the parts of answers that were collected."
  (let ((deltas (nreverse compactd-session--deltas)))
    (setq compactd-session--deltas nil)
    (pcase-dolist (`(,id ,type . ,texts) deltas)
      (let ((session (gethash id compactd-sessions)))
        (when session
          (compactd-session--hand-on
           session (list :type type :delta (apply #'concat (nreverse texts)))))))))

(defun compactd-session--flush ()
  "Bring what changed to the screen."
  (setq compactd-session--timer nil)
  (compactd-session--flush-deltas)
  (let ((changed compactd-session--changed))
    (setq compactd-session--changed nil)
    (dolist (id changed)
      (let ((session (gethash id compactd-sessions)))
        (when session
          (compactd-session--hand-on session (list :type "changed")))))
    (when changed
      (force-mode-line-update t)))
  (let ((stale compactd-session--stale))
    (setq compactd-session--stale nil)
    ;; A question would start a daemon that is not there.
    (when (eq compactd-daemon-status 'ready)
      (mapc #'compactd-session-refresh stale))))

(defun compactd-session-touch (id)
  "The session ID is another than on the screen; nil: only parts of answers are."
  (when (and id (not (member id compactd-session--changed)))
    (push id compactd-session--changed))
  (unless compactd-session--timer
    (setq compactd-session--timer
          (run-at-time compactd-coalesce nil #'compactd-session--flush))))

(defun compactd-session-refresh (id)
  "Ask how the session ID stands."
  (compactd-request
   "agent/state" (list :session_id id)
   (lambda (state)
     (let ((session (gethash id compactd-sessions)))
       (when session
         (setf (compactd-session-title session) (or (plist-get state :title) id)
               (compactd-session-model session) (plist-get state :model)
               (compactd-session-usage session) (plist-get state :token_usage)
               (compactd-session-message-count session) (plist-get state :message_count)
               (compactd-session-status session) (plist-get state :status))
         (let ((was (compactd-session-held session))
               ;; What another program does with it is "unknown", or "compacting".
               (held (and (compactd-session-read-only session)
                          (not (equal (plist-get state :status) "idle")))))
           (setf (compactd-session-held session) held)
           (when (and held (eq was 'unknown))
             (compactd-daemon--tell "open in another program; here it can be read and followed")))
         (compactd-session-touch id))))
   #'ignore))

(defun compactd-session--take (session event)
  "Take EVENT over into SESSION."
  (pcase (plist-get event :type)
    ("agent_start" (setf (compactd-session-status session) "running"))
    ("message_start" (setf (compactd-session-status session) "streaming"))
    ("tool_execution_start" (setf (compactd-session-status session) "executing_tools"))
    ("agent_end"
     (setf (compactd-session-status session) "idle"
           (compactd-session-usage session) (plist-get event :usage))
     (cl-pushnew (compactd-session-id session) compactd-session--stale :test #'equal))
    ("error" (setf (compactd-session-status session) "idle"))
    ("usage_update"
     (setf (compactd-session-usage session) (plist-get event :usage))
     (cl-pushnew (compactd-session-id session) compactd-session--stale :test #'equal))
    ("compaction_start" (setf (compactd-session-compacting session) 0))
    ("compaction_progress"
     (setf (compactd-session-compacting session) (plist-get event :fraction)))
    ("compaction_end"
     (setf (compactd-session-compacting session) nil)
     (let ((result (plist-get event :result)))
       (when (and result (equal (plist-get event :status) "completed"))
         (let ((said (format "✓ Compacted %s  Tokens: %s → %s (saved %s)"
                             (compactd-text-count (plist-get result :messages_removed) "message")
                             (compactd-text-number (plist-get result :tokens_before))
                             (compactd-text-number (plist-get result :tokens_after))
                             (compactd-text-number (plist-get result :tokens_saved)))))
           (compactd-log-add "life" said)
           (message "%s" said))
         (run-hook-with-args 'compactd-compacted-functions session result)))
     (compactd-session-refresh (compactd-session-id session)))
    ("model_changed" (setf (compactd-session-model session) (plist-get event :model)))
    ("session_changed"
     (cl-pushnew (compactd-session-id session) compactd-session--stale :test #'equal))
    ("writer_changed"
     (let ((owner (plist-get event :owner)))
       (setf (compactd-session-read-only session) (not (equal owner "this"))
             (compactd-session-held session) (equal owner "other")
             ;; The one of a program that ended has no end.
             (compactd-session-compacting session) nil))
     (cl-pushnew (compactd-session-id session) compactd-session--stale :test #'equal))
    ("session_closed"
     (when (equal (plist-get event :reason) "deleted")
       (compactd-daemon--tell
        (format "%s was deleted by another program"
                (compactd-text-line (compactd-session-title session) 40))))
     (remhash (compactd-session-id session) compactd-sessions))))

(defun compactd-session--on-event (event)
  "Take in EVENT, as the daemon sent it."
  (let* ((id (plist-get event :session_id))
         (session (gethash id compactd-sessions))
         (seq (plist-get event :seq))
         (type (plist-get event :type)))
    (when session
      (when (and seq (> (compactd-session-seq session) 0)
                 (> seq (1+ (compactd-session-seq session))))
        ;; Something was left out while we did not read.
        (compactd-session-refresh id))
      (when seq
        (setf (compactd-session-seq session) seq))
      (if (member type '("message_delta" "thinking_delta"))
          (let ((last (car compactd-session--deltas)))
            (if (and last (equal (car last) id) (equal (cadr last) type))
                (push (plist-get event :delta) (cddr last))
              (push (list id type (plist-get event :delta)) compactd-session--deltas))
            (compactd-session-touch nil))
        (compactd-session--flush-deltas)
        (compactd-session--take session event)
        (compactd-session--hand-on session event)
        (compactd-session-touch id)))))

(defun compactd-session--take-in (result)
  "Keep the session that `session/start' answered RESULT for; return it."
  (let* ((id (plist-get result :session_id))
         (session (compactd-session-create
                   :id id
                   :title (or (plist-get result :title) id)
                   :model (plist-get result :model)
                   :usage (plist-get result :token_usage)
                   :message-count (plist-get result :message_count)
                   :read-only (eq t (plist-get result :read_only))
                   :seq (plist-get result :seq))))
    (puthash id session compactd-sessions)
    (seq-doseq (warning (plist-get result :warnings))
      (compactd-log-add "daemon" warning))
    (compactd-session-refresh id)
    (compactd-session-touch id)
    session))

(defun compactd-session--client ()
  "Return who asks for a session."
  (list :name "compactd.el" :version emacs-version))

(defconst compactd-session--writes
  '("agent/prompt" "model/set" "prompt/drop" "session/append" "session/branch"
    "session/compact" "session/configure" "session/delete" "session/pin"
    "session/prune" "session/redact" "session/redo" "session/undo"
    "turn/begin" "turn/end" "turn/error")
  "What changes a session: its lock is taken before.")

(defun compactd-session-take (id then failure)
  "Take the session ID, if it is only looked at, for writing; then call THEN.
It stays read-only if another program has it: then the daemon refuses the
change itself, and names that program.  FAILURE is called as in
`compactd-request'."
  (let ((session (gethash id compactd-sessions)))
    (if (not (and session (compactd-session-read-only session)))
        (funcall then)
      (compactd-request
       "session/start" (list :session_id id :client (compactd-session--client))
       (lambda (result)
         (let ((session (compactd-session--take-in result)))
           (setf (compactd-session-held session) (compactd-session-read-only session)))
         (funcall then))
       failure))))

(defun compactd-session--name-holder (failure)
  "Return FAILURE; if it is of a lock, with the name of its holder."
  (if (not (equal "SessionLocked" (alist-get (plist-get failure :code) compactd-protocol-errors)))
      failure
    (let* ((data (plist-get failure :data))
           (pid (plist-get data :pid))
           (name (plist-get data :name)))
      (list :code (plist-get failure :code)
            :data data
            :message (format "open in another program%s: close it there first"
                             (if pid
                                 (format " (%sprocess %d)"
                                         (if name (concat (compactd-text-clean name) ", ") "")
                                         pid)
                               ""))))))

(defun compactd-session-request (method params success &optional failure)
  "Ask the daemon METHOD with PARAMS, as `compactd-request' does.
What changes a session takes it for writing first: the only place that
does.  SUCCESS and FAILURE are called as there."
  (if (or (not (member method compactd-session--writes)) (eq t (plist-get params :dry_run)))
      (compactd-request method params success failure)
    (let ((failure (or failure #'compactd-say-failure)))
      (compactd-session-take
       (plist-get params :session_id)
       (lambda ()
         (compactd-request
          method params success
          (lambda (refused) (funcall failure (compactd-session--name-holder refused)))))
       failure))))

(defun compactd-session--keep (result)
  "Keep the session of RESULT, which was just opened, as the current one."
  (setq compactd-current-id (plist-get result :session_id))
  (let ((session (compactd-session--take-in result)))
    (run-hook-with-args 'compactd-session-functions session)
    session))

(defun compactd-session-start (id title success &optional failure writes)
  "Open the stored session ID, or a new one of TITLE; call SUCCESS with it.
A stored one is looked at, without its lock, unless WRITES.
FAILURE is called as in `compactd-request'."
  (compactd-request
   "session/start"
   (append
    (list :client (compactd-session--client))
    (if id
        (append (list :session_id id) (and (not writes) (list :read_only t)))
      (append
       (list :working_dir (expand-file-name default-directory)
             :tools compactd-tools-schemas)
       (and title (list :title title))
       (and compactd-model (list :model compactd-model))
       (and compactd-system-prompt (list :system_prompt compactd-system-prompt)))))
   (lambda (result) (funcall success (compactd-session--keep result)))
   failure))

(defun compactd-session-with (act)
  "Call ACT with the session that commands mean, or with a new one."
  (let ((session (compactd-session-current)))
    (if session
        (funcall act session)
      (compactd-session-start nil nil act))))

(defun compactd-session--resume (how)
  "Open the sessions of the daemon before again, which ended by HOW.
Each to look or to write, as before."
  (let* ((before (hash-table-values compactd-sessions))
         (current compactd-current-id)
         (left (length before))
         (lost nil))
    (cl-flet ((say ()
                (setq compactd-current-id (if (gethash current compactd-sessions)
                                              current
                                            compactd-current-id))
                (when (or how lost)
                  (compactd-daemon--tell
                   (format "the daemon %s and was started again; %s resumed%s"
                           (if how (concat "ended with " how) "was ended")
                           (compactd-text-count (- (length before) (length lost)) "session")
                           (if lost (concat "; lost: " (string-join lost ", ")) ""))))))
      (if (null before)
          (when how (say))
        (dolist (old before)
          (let ((id (compactd-session-id old))
                (title (compactd-session-title old)))
            (compactd-session-start
             id title
             (lambda (session)
               (compactd-session--hand-on session (list :type "resumed"))
               (setq left (1- left))
               (when (zerop left) (say)))
             (lambda (failure)
               ;; Where it died once more, the next one opens them.
               (unless (eql (plist-get failure :code) compactd-daemon-gone)
                 (push (compactd-text-line title 40) lost)
                 (remhash id compactd-sessions)
                 (setq left (1- left))
                 (when (zerop left) (say))))
             (not (compactd-session-read-only old)))))))))

(defun compactd-session--on-gone ()
  "The daemon is no more, and nothing is under way."
  (setq compactd-session--deltas nil)
  (maphash (lambda (id session)
             (setf (compactd-session-status session) "idle"
                   (compactd-session-compacting session) nil)
             (compactd-session--hand-on session (list :type "gone"))
             (compactd-session-touch id))
           compactd-sessions))

(setq compactd-daemon-event-function #'compactd-session--on-event
      compactd-daemon-gone-function #'compactd-session--on-gone
      compactd-daemon-tool-function #'compactd-tools-execute
      compactd-daemon-ready-function
      (lambda (again how) (when again (compactd-session--resume how))))

;;; The gauge

(defun compactd-gauge-short (session)
  "Return how full the context of SESSION is, in a word."
  (let* ((percent (compactd-session-usage-of session :percent))
         (guess (equal (compactd-session-usage-of session :context_window_confidence) "guess"))
         (compacting (compactd-session-compacting session)))
    (concat
     compactd-icon " "
     (cond (compacting (format "compacting %d %%" (round (* 100 compacting))))
           (percent (format "%s%d %%%s" (if guess "~" "") (round percent) (if guess "?" "")))
           (t (compactd-text-number
               (compactd-session-usage-of session :current_context_tokens))))
     (pcase (compactd-session-kind session) ('due " due") ('over " over"))
     (if (eq t (compactd-session-held session)) " open in another program" ""))))

(defun compactd-gauge-face (session)
  "Return the face of the gauge of SESSION: none if nothing needs attention."
  (pcase (compactd-session-kind session)
    ('over 'compactd-over)
    ('due 'compactd-due)
    (_ (and (equal (compactd-session-usage-of session :context_window_confidence) "guess")
            'compactd-due))))

(defun compactd-gauge-long (session)
  "Return the details of the gauge of SESSION, as lines."
  (let* ((usage (compactd-session-usage session))
         (billed (plist-get (plist-get usage :cost) :billed)))
    (append
     (list
      (format "%s · %s · %s"
              (compactd-text-line (compactd-session-title session) 50)
              (compactd-text-clean (or (compactd-session-model session) "no model"))
              (compactd-text-count (compactd-session-message-count session) "message"))
      (format "used      %10s   %s%s"
              (compactd-text-number (plist-get usage :current_context_tokens))
              (plist-get usage :current_context_source)
              (if (plist-get usage :percent)
                  (format " · %.1f %%" (plist-get usage :percent))
                ""))
      (format "window    %10s   %s"
              (compactd-text-number (plist-get usage :context_window))
              (plist-get usage :context_window_confidence))
      (string-trim-right
       (format "compacts  %10s   %s"
               (compactd-text-number (plist-get usage :threshold_tokens))
               (pcase (compactd-session-kind session)
                 ('due "due: before the next request")
                 ('over "over: the next request would not fit")
                 (_ "")))))
     (and (numberp billed)
          (list (format "cost      %10s   so far, at list prices" (format "$%.2f" billed)))))))

(provide 'compactd-session)
;;; compactd-session.el ends here
