;;; compactd-chat.el --- A conversation with the session's model -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What stands below the rule is the next prompt.

;;; Code:

(require 'compactd-session)
(require 'compactd-tools)

(defvar-local compactd-chat--id nil "The session of this conversation.")
(defvar-local compactd-chat--rule nil "Where the rule begins: what is new goes before it.")
(defvar-local compactd-chat--prompt nil "Where the prompt begins.")
(defvar-local compactd-chat--stream nil "Where the answer that streams in begins.")
(defvar-local compactd-chat--held nil "What streamed in so far, newest first.")
(defvar-local compactd-chat--answering nil "Whether the model answers.")
(defvar-local compactd-chat--last nil "The id of the newest entry that was shown.")
(defvar-local compactd-chat--asking nil "Whether newer entries are on their way.")
(defvar-local compactd-chat--stale nil "Whether something was said while they were.")
(defvar-local compactd-chat--waiting nil
  "What is called when everything that was said is shown, newest first.")

(defconst compactd-chat--line "──── you: RET sends, C-j a new line, C-c C-k stops ────\n")

(defun compactd-chat--name (id)
  "Return the name of the buffer of the session ID."
  (format "*compactd chat %s*" id))

(defun compactd-chat--add (text &optional face)
  "Add TEXT in FACE above the rule."
  (let ((inhibit-read-only t)
        (windows (seq-filter (lambda (window)
                               (>= (window-point window) compactd-chat--prompt))
                             (get-buffer-window-list (current-buffer) nil t)))
        (offset nil))
    (setq offset (mapcar (lambda (window) (- (window-point window) compactd-chat--prompt))
                         windows))
    (save-excursion
      (goto-char compactd-chat--rule)
      (let ((text (propertize text 'read-only t 'rear-nonsticky t 'front-sticky t)))
        (when face
          (put-text-property 0 (length text) 'face face text))
        (insert-before-markers text)))
    (cl-mapc (lambda (window offset)
               (set-window-point window (+ compactd-chat--prompt offset)))
             windows offset)))

(defun compactd-chat--stream-in (delta)
  "Add DELTA to the answer that streams in."
  (unless compactd-chat--stream
    (setq compactd-chat--stream (copy-marker compactd-chat--rule)
          compactd-chat--held nil)
    (set-marker-insertion-type compactd-chat--stream nil))
  (let ((start (marker-position compactd-chat--stream)))
    (push delta compactd-chat--held)
    (compactd-chat--add (compactd-text-clean delta))
    ;; What is inserted before markers takes this one along.
    (set-marker compactd-chat--stream start)))

(defun compactd-chat--settle (answer)
  "The ANSWER is whole: give its Markdown faces.
If parts of it were left out while it streamed in, put it in their place."
  (let* ((streamed (apply #'concat (reverse compactd-chat--held)))
         (whole (compactd-text-markdown (compactd-text-clean answer))))
    (cond
     ((null compactd-chat--stream)
      (unless (string-empty-p answer)
        (compactd-chat--add whole)))
     ((equal streamed answer)
      ;; The words stay where they are: nobody loses their place.
      (compactd-chat--copy-faces whole compactd-chat--stream))
     (t
      (let ((inhibit-read-only t))
        (delete-region compactd-chat--stream compactd-chat--rule))
      (compactd-chat--add whole)))
    (when (or compactd-chat--stream (not (string-empty-p answer)))
      (compactd-chat--add "\n\n"))
    (setq compactd-chat--stream nil
          compactd-chat--held nil)))

(defun compactd-chat--copy-faces (text start)
  "Give what begins at START the faces of TEXT, if it is the same text."
  (let ((end (+ start (length text)))
        (inhibit-read-only t)
        (from 0))
    (when (and (<= end compactd-chat--rule)
               (equal (buffer-substring-no-properties start end) (substring-no-properties text)))
      (while (< from (length text))
        (let ((to (or (next-single-property-change from 'face text) (length text)))
              (face (get-text-property from 'face text)))
          (when face
            (put-text-property (+ start from) (+ start to) 'face face))
          (setq from to))))))

(defun compactd-chat--take (event)
  "Show EVENT in this conversation."
  (pcase (plist-get event :type)
    ("message_appended"
     (if (compactd-chat--followed)
         (compactd-chat--catch-up (current-buffer))
       ;; What is said here is shown as it comes.
       (setq compactd-chat--last (plist-get event :entry_id))))
    ((and "session_changed" (guard (and (compactd-chat--followed)
                                        (equal (plist-get event :what) "branch"))))
     (let ((inhibit-read-only t))
       (delete-region (point-min) compactd-chat--rule))
     (setq compactd-chat--last nil)
     (compactd-chat--catch-up (current-buffer)))
    ((and "resumed" (guard (compactd-chat--followed)))
     (compactd-chat--catch-up (current-buffer)))
    ((and "session_closed" (guard (equal (plist-get event :reason) "deleted")))
     (compactd-chat--add "this session was deleted by another program\n\n" 'compactd-over))
    ("agent_start" (setq compactd-chat--answering t))
    ("message_delta" (compactd-chat--stream-in (plist-get event :delta)))
    ("message_end"
     (let ((message (plist-get event :message)))
       (compactd-chat--settle (compactd-text-answer message))
       (let ((content (plist-get message :content)))
         (seq-doseq (block (and (vectorp content) content))
           (when (equal (plist-get block :type) "tool_call")
             (compactd-chat--add (concat (compactd-text-line (compactd-text-block block) 100)
                                         "\n\n")
                                 'compactd-faint))))))
    ("retry"
     (compactd-chat--add (format "again (%d): %s\n\n" (plist-get event :attempt)
                                 (compactd-text-line (plist-get event :reason) 80))
                         'compactd-faint))
    ("agent_end"
     (setq compactd-chat--answering nil)
     (when (equal (plist-get event :stop_reason) "aborted")
       (compactd-chat--add "stopped\n\n" 'compactd-faint)))
    ("error"
     (setq compactd-chat--answering nil)
     (compactd-chat--settle (apply #'concat (reverse compactd-chat--held)))
     (compactd-chat--add (concat "✗ " (compactd-text-line (plist-get event :message) 200) "\n\n")
                         'compactd-over))
    ("compaction_end"
     (let ((result (plist-get event :result)))
       (cond
        ((and result (equal (plist-get event :status) "completed"))
         (compactd-chat--add
          (format "──── compacted %s · %s → %s · M-x compactd-undo, compactd-context ────\n\n"
                  (compactd-text-count (plist-get result :messages_removed) "message")
                  (compactd-text-number (plist-get result :tokens_before))
                  (compactd-text-number (plist-get result :tokens_after)))
          'compactd-faint))
        ((plist-get event :error)
         (compactd-chat--add
          (concat "✗ compaction failed: "
                  (compactd-text-line (plist-get (plist-get event :error) :message) 120) "\n\n")
          'compactd-over)))))
    ("gone"
     (when compactd-chat--answering
       (setq compactd-chat--answering nil)
       (compactd-chat--settle (apply #'concat (reverse compactd-chat--held)))
       (compactd-chat--add "the daemon ended while it answered; ask again\n\n"
                           'compactd-over)))))

(defun compactd-chat--on-event (session event)
  "Show EVENT of SESSION where its conversation is open."
  (let ((buffer (get-buffer (compactd-chat--name (compactd-session-id session)))))
    (when (and buffer (buffer-local-value 'compactd-chat--rule buffer))
      (with-current-buffer buffer
        (compactd-chat--take event)))))

(add-hook 'compactd-event-functions #'compactd-chat--on-event)

(defun compactd-chat--say (prompt)
  "Show PROMPT above the rule, and send it."
  (let ((buffer (current-buffer)))
    (compactd-chat--add (concat "› " (compactd-text-clean prompt) "\n\n") 'compactd-head)
    (compactd-session-request
     "agent/prompt" (list :session_id compactd-chat--id :text prompt)
     (lambda (result)
       (when (and (eq t (plist-get result :queued)) (buffer-live-p buffer))
         (with-current-buffer buffer
           (compactd-chat--add "(waits until the answer before it is done)\n\n"
                               'compactd-faint))))
     (lambda (failure)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (compactd-chat--add
            (concat "✗ " (compactd-text-line (plist-get failure :message) 200) "\n\n")
            'compactd-over)
           (when (= compactd-chat--prompt (point-max))
             (save-excursion
               (goto-char (point-max))
               (insert prompt)))))))))

(defun compactd-chat-send ()
  "Send the prompt below the rule."
  (interactive)
  (let ((prompt (string-trim (buffer-substring-no-properties compactd-chat--prompt (point-max))))
        (buffer (current-buffer)))
    (unless (string-empty-p prompt)
      (let ((inhibit-read-only t))
        (delete-region compactd-chat--prompt (point-max)))
      (goto-char (point-max))
      (if (not (compactd-chat--followed))
          (compactd-chat--say prompt)
        ;; What others said before this prompt is above it.
        (let ((then (lambda (&rest _)
                      (compactd-chat--catch-up
                       buffer (lambda () (compactd-chat--say prompt))))))
          (compactd-session-take compactd-chat--id then then))))))

(defun compactd-chat-stop ()
  "Stop the answer that is coming."
  (interactive)
  (compactd-request "agent/abort" (list :session_id compactd-chat--id) #'ignore))

(defvar compactd-chat-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'compactd-chat-send)
    (define-key map (kbd "C-c C-c") #'compactd-chat-send)
    (define-key map (kbd "C-j") #'newline)
    (define-key map (kbd "C-c C-k") #'compactd-chat-stop)
    map)
  "Keys of `compactd-chat-mode'.")

(define-derived-mode compactd-chat-mode text-mode "Chat"
  "A conversation with the model of a session.

\\{compactd-chat-mode-map}"
  (visual-line-mode 1)
  (buffer-disable-undo))

(defun compactd-chat--begin ()
  "Show the rule in this empty buffer."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (setq compactd-chat--rule (point-marker))
    (insert (propertize compactd-chat--line 'face 'compactd-faint 'read-only t
                        'rear-nonsticky t 'front-sticky t))
    (setq compactd-chat--prompt (point-marker))
    (set-marker-insertion-type compactd-chat--prompt nil)
    (goto-char (point-max))))

(defun compactd-chat--add-entries (entries)
  "Show what was said in ENTRIES, a list, above the rule."
  (dolist (entry entries)
    (let* ((message (plist-get entry :message))
           (role (plist-get message :role))
           (said (if (equal role "user")
                     (compactd-text-message message)
                   (compactd-text-answer message))))
      (when (and (equal (plist-get entry :kind) "message")
                 (member role '("user" "assistant"))
                 (not (string-empty-p said)))
        (if (equal role "user")
            (compactd-chat--add (concat "› " (compactd-text-clean said) "\n\n") 'compactd-head)
          (compactd-chat--add (concat (compactd-text-markdown (compactd-text-clean said))
                                      "\n\n")))))
    (setq compactd-chat--last (plist-get entry :entry_id))))

(defun compactd-chat--followed ()
  "Return whether this conversation is only looked at."
  (let ((session (gethash compactd-chat--id compactd-sessions)))
    (and session (compactd-session-read-only session))))

(defun compactd-chat--catch-up (buffer &optional then)
  "Show what was said since in the session of BUFFER; then call THEN in it."
  (with-current-buffer buffer
    (when then
      (push then compactd-chat--waiting))
    (if compactd-chat--asking
        (setq compactd-chat--stale t)
      (setq compactd-chat--asking t)
      (let* ((from compactd-chat--last)
             (done (lambda (entries)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer
                         (setq compactd-chat--asking nil)
                         (compactd-chat--add-entries
                          (if (and from (equal from (plist-get (car entries) :entry_id)))
                              (cdr entries)
                            entries))
                         (if compactd-chat--stale
                             (progn (setq compactd-chat--stale nil)
                                    (compactd-chat--catch-up buffer))
                           (let ((waiting (nreverse compactd-chat--waiting)))
                             (setq compactd-chat--waiting nil)
                             (mapc #'funcall waiting))))))))
        (compactd-request
         "session/history"
         (append (list :session_id compactd-chat--id) (and from (list :from from)))
         (lambda (result) (funcall done (append (plist-get result :entries) nil)))
         (lambda (_failure) (funcall done nil)))))))

(defun compactd-chat-show (session)
  "Show the conversation of SESSION."
  (let* ((name (compactd-chat--name (compactd-session-id session)))
         (there (get-buffer name))
         (folder default-directory))
    (if (and there (buffer-local-value 'compactd-chat--rule there))
        (progn (pop-to-buffer there)
               (goto-char (point-max)))
      (with-current-buffer (get-buffer-create name)
        (compactd-chat-mode)
        (setq compactd-chat--id (compactd-session-id session)
              default-directory folder)
        (compactd-chat--begin)
        (compactd-chat--catch-up (current-buffer)
                                 (lambda ()
                                   (pop-to-buffer (current-buffer))
                                   (goto-char (point-max))))))))

(provide 'compactd-chat)
;;; compactd-chat.el ends here
