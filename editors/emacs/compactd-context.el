;;; compactd-context.el --- The context of a session, to be read -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Every entry with its size; a summary opens to its originals.

;;; Code:

(require 'cl-lib)
(require 'compactd-session)

(declare-function compactd-compact "compactd-commands")
(declare-function compactd-undo "compactd-commands")
(declare-function compactd-redo "compactd-commands")
(declare-function compactd-search "compactd-commands")
(declare-function compactd-work "compactd-commands")

(defvar-local compactd-context--id nil "The session that this buffer is about.")
(defvar-local compactd-context--stamp nil "What the buffer shows, in a word.")
(defvar-local compactd-context--asking nil "Whether a history is on its way.")
(defvar-local compactd-context--stale nil
  "Whether something changed while a history was on its way.")

(defconst compactd-context--first 200
  "How many entries fill any screen; the others come when these are shown.")
(defconst compactd-context--page 400
  "How many entries are asked for at once then.
Little enough that a key between two of them does not wait.")

;;; Entries

(defun compactd-context-said (entry)
  "Return the text of ENTRY."
  (if (plist-get entry :compaction)
      (or (plist-get (plist-get entry :compaction) :summary) "")
    (compactd-text-message (plist-get entry :message))))

(defun compactd-context--words (entry)
  "Return what to say about ENTRY: pinned, pruned, a summary."
  (string-join
   (delq nil
         (list (cond ((eq t (plist-get entry :pinned)) "pinned")
                     ((eq t (plist-get entry :carried)) "carried over"))
               (and (plist-get entry :pruned_at) "pruned")
               (and (plist-get entry :compaction)
                    (concat "stands for "
                            (compactd-text-count
                             (plist-get (plist-get entry :compaction) :messages_removed)
                             "message")))))
   ", "))

(defun compactd-context--face (entry)
  "Return the face of ENTRY, or nil."
  (cond ((plist-get entry :compaction) 'compactd-summary)
        ((or (eq t (plist-get entry :pinned)) (eq t (plist-get entry :carried)))
         'compactd-pinned)
        ((plist-get entry :pruned_at) 'compactd-faint)))

(defun compactd-context-head (entry width)
  "Return the line of ENTRY: id, role, tokens, how it begins, in WIDTH columns."
  (let* ((said (compactd-context-said entry))
         (words (compactd-context--words entry))
         (line (format "%-6s %-9s %8s  %s"
                       (compactd-text-clean (plist-get entry :entry_id))
                       (if (plist-get entry :compaction)
                           "summary"
                         (compactd-text-clean
                          (or (plist-get (plist-get entry :message) :role)
                              (plist-get entry :kind))))
                       (if (plist-get entry :tokens)
                           (compactd-text-number (plist-get entry :tokens))
                         (format "%d B" (string-bytes said)))
                       (if (string-empty-p words) "" (concat words " · ")))))
    (concat line (compactd-text-line (or (plist-get entry :title) said)
                                     (max 20 (- width (length line)))))))

(defun compactd-context--insert-head (entry indent)
  "Insert the line of ENTRY behind INDENT."
  (insert (propertize (concat indent
                              (compactd-context-head entry (- (window-width) 2 (length indent))))
                      'face (compactd-context--face entry)
                      'compactd-entry entry
                      'compactd-indent indent)
          "\n"))

(defun compactd-context--is-opened ()
  "Return whether the line here was opened below the line of an entry."
  (or (get-text-property (point) 'compactd-body)
      (get-text-property (point) 'compactd-original)))

(defun compactd-context--body-end ()
  "Return where the text that is open below this line ends, or nil."
  (save-excursion
    (forward-line 1)
    (let ((start (point)))
      (while (and (not (eobp)) (get-text-property (point) 'compactd-body))
        (forward-line 1))
      (and (> (point) start) (point)))))

(defun compactd-context--insert-body (text indent)
  "Insert TEXT behind INDENT, as what is open below a line."
  (let ((start (point)))
    (dolist (line (split-string (compactd-text-clean text) "\n"))
      (insert indent "       " line "\n"))
    (put-text-property start (point) 'compactd-body t)))

(defun compactd-context-toggle ()
  "Open or close what is behind this line."
  (interactive)
  (beginning-of-line)
  (while (and (get-text-property (point) 'compactd-body) (not (bobp)))
    (forward-line -1))
  (let* ((inhibit-read-only t)
         (entry (get-text-property (point) 'compactd-entry))
         (original (get-text-property (point) 'compactd-original))
         (indent (get-text-property (point) 'compactd-indent))
         (end (and (or entry original) (compactd-context--body-end))))
    (save-excursion
      (cond
       (end (delete-region (line-beginning-position 2) end))
       ((or entry original)
        (forward-line 1)
        (compactd-context--insert-body
         (if entry (compactd-context-said entry) (compactd-text-message original))
         indent))))))

(defun compactd-context--to-originals ()
  "Go to where the messages behind the summary here are: below its text."
  (forward-line 1)
  (while (and (not (eobp)) (get-text-property (point) 'compactd-body))
    (forward-line 1)))

(defun compactd-context--close-originals ()
  "Take the open messages behind the summary here away.
Return whether there were any."
  (save-excursion
    (compactd-context--to-originals)
    (let ((start (point))
          (inhibit-read-only t))
      (while (and (not (eobp)) (compactd-context--is-opened))
        (forward-line 1))
      (prog1 (> (point) start)
        (delete-region start (point))))))

(defun compactd-context--line-of (compaction)
  "Return where the line of the summary of COMPACTION begins, or nil."
  (save-excursion
    (goto-char (point-min))
    (while (and (not (eobp))
                (not (equal compaction (compactd-context--compaction-at (point)))))
      (forward-line 1))
    (and (not (eobp)) (point))))

(defun compactd-context--compaction-at (position)
  "Return the id of the compaction whose summary has its line at POSITION, or nil."
  (plist-get (plist-get (get-text-property position 'compactd-entry) :compaction)
             :compaction_id))

(defun compactd-context--insert-originals (entries)
  "Insert the messages ENTRIES, for which a summary stands."
  (seq-doseq (original entries)
    (let ((message (plist-get original :message)))
      (insert (propertize
               (format "  ┆ %-6s %-9s %s"
                       (compactd-text-clean (plist-get original :entry_id))
                       (compactd-text-clean (plist-get message :role))
                       (compactd-text-line (compactd-text-message message) 60))
               'face 'compactd-faint
               'compactd-original message
               'compactd-indent "  ┆    ")
              "\n"))))

(defun compactd-context-open ()
  "Open the messages behind the summary here; of others, the text."
  (interactive)
  (let ((compaction (compactd-context--compaction-at (line-beginning-position)))
        (buffer (current-buffer)))
    (cond
     ((null compaction) (compactd-context-toggle))
     ((compactd-context--close-originals))
     (t
      (compactd-request
       "session/expand" (list :session_id compactd-context--id :compaction_id compaction)
       (lambda (result)
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             ;; The buffer may have been drawn again since the question.
             (let ((inhibit-read-only t)
                   (head (compactd-context--line-of compaction)))
               (when head
                 (save-excursion
                   (goto-char head)
                   (compactd-context--close-originals) ; RET was pressed twice
                   (compactd-context--to-originals)
                   (compactd-context--insert-originals (plist-get result :entries)))))))))))))

(defun compactd-context-pin ()
  "Pin the message here, so that every later context has it, or let it go."
  (interactive)
  (let ((entry (get-text-property (line-beginning-position) 'compactd-entry))
        (id compactd-context--id)
        (buffer (current-buffer)))
    (unless entry
      (user-error "There is no message here"))
    (compactd-session-request
     "session/pin"
     (list :session_id id :entry_ids (vector (plist-get entry :entry_id))
           :pinned (if (eq t (plist-get entry :pinned)) :json-false t))
     (lambda (_result) (compactd-context--load buffer)))))

(defun compactd-context--opened ()
  "Return what the user has opened: a table of texts by the id of their entry."
  (let ((opened (make-hash-table :test #'equal)))
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (let ((entry (get-text-property (point) 'compactd-entry))
              (start (progn (forward-line 1) (point))))
          (while (and (not (eobp)) (compactd-context--is-opened))
            (forward-line 1))
          (when (and entry (> (point) start))
            (puthash (plist-get entry :entry_id) (buffer-substring start (point)) opened)))))
    opened))

(defun compactd-context--insert-entries (entries opened)
  "Insert ENTRIES at point, with what is OPENED below them."
  (let ((gc-cons-threshold (* 64 1024 1024))) ; else a third of the time with 5,000 entries
    (seq-doseq (entry entries)
      (compactd-context--insert-head entry "")
      (let ((text (gethash (plist-get entry :entry_id) opened)))
        (cond
         ((null text))
         ((plist-get entry :compaction) (insert text))
         ;; The text may be another one now, for example pruned.
         (t (compactd-context--insert-body (compactd-context-said entry) "")))))))

(defun compactd-context--draw (session result entries)
  "Show SESSION in this buffer, with ENTRIES and the counts of RESULT.
What the user has opened stays open."
  (let ((inhibit-read-only t)
        (line (line-number-at-pos))
        (opened (compactd-context--opened))
        (total (plist-get result :total))
        (summarised (plist-get result :summarised)))
    (erase-buffer)
    (let ((lines (compactd-gauge-long session)))
      (insert (propertize (car lines) 'face 'compactd-head) "\n"
              (string-join (cdr lines) "\n") "\n\n"))
    (insert (propertize
             (concat (format "In the context: %s %s" (compactd-text-number total)
                             (if (= total 1) "entry" "entries"))
                     (if (> summarised 0)
                         (format " · summarised: %s (RET on a summary opens them)"
                                 (compactd-text-count summarised "message"))
                       ""))
             'face 'compactd-head)
            "\n")
    (compactd-context--insert-entries entries opened)
    (when (zerop total)
      (insert "Nothing yet.  M-x compactd-chat begins a conversation.\n"))
    (goto-char (point-min))
    (forward-line (1- line))))

(defun compactd-context--ask (buffer limit from got)
  "Ask for the context of BUFFER, page by page.
LIMIT is that of the first page, FROM its first entry or nil.  GOT is
called with the result of each page, at last with nil, in BUFFER."
  (let ((tell (lambda (result)
                (when (buffer-live-p buffer)
                  (with-current-buffer buffer
                    (funcall got result))))))
    (compactd-request
     "session/history"
     (append (list :session_id (buffer-local-value 'compactd-context--id buffer)
                   :in_context t :limit limit)
             (and from (list :from from)))
     (lambda (result)
       (funcall tell result)
       (if (and (plist-get result :next) (buffer-live-p buffer))
           (compactd-context--ask buffer compactd-context--page (plist-get result :next) got)
         (funcall tell nil)))
     (lambda (failure)
       (compactd-say-failure failure)
       (funcall tell nil)))))

(defun compactd-context--asked ()
  "What was asked for this buffer is here; ask again where it is old by now."
  (setq compactd-context--asking nil)
  (when compactd-context--stale
    (setq compactd-context--stale nil)
    (compactd-context--load (current-buffer))))

(defun compactd-context--open (buffer then)
  "Show the context of BUFFER's session.
THEN is called when a screen of it is there."
  (if (buffer-local-value 'compactd-context--asking buffer)
      (funcall then)
    (with-current-buffer buffer
      (setq compactd-context--asking t))
    (let ((first t)
          (opened (with-current-buffer buffer (compactd-context--opened))))
      (compactd-context--ask
       buffer compactd-context--first nil
       (lambda (result)
         (let ((session (gethash compactd-context--id compactd-sessions)))
           (cond
            ((or (null result) (null session)) (compactd-context--asked))
            (first
             (setq first nil)
             (compactd-context--draw session result (plist-get result :entries))
             (funcall then))
            (t
             (let ((inhibit-read-only t))
               (save-excursion
                 (goto-char (point-max))
                 (compactd-context--insert-entries (plist-get result :entries) opened)))))))))))

(defun compactd-context--load (buffer)
  "Show the context of BUFFER's session as it is now.
All at once, so that nothing moves under point."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (if compactd-context--asking
          (setq compactd-context--stale t)
        (setq compactd-context--asking t)
        (let ((pages nil)
              (head nil))
          (compactd-context--ask
           buffer compactd-context--page nil
           (lambda (result)
             (if result
                 (progn
                   (setq head (or head result))
                   (push (plist-get result :entries) pages))
               (let ((session (gethash compactd-context--id compactd-sessions)))
                 (when (and head session)
                   (compactd-context--draw session head
                                           (apply #'vconcat (nreverse pages)))))
               (compactd-context--asked)))))))))

(defun compactd-context--on-event (session event)
  "Show the context of SESSION again if EVENT changed it."
  ;; After these it may be another one although its size is the same.
  (when (member (plist-get event :type)
                '("compaction_end" "prune_end" "session_changed" "writer_changed" "resumed"))
    (let ((buffer (get-buffer (compactd-context--name session))))
      (when buffer
        (with-current-buffer buffer
          (setq compactd-context--stamp nil)))))
  (when (equal (plist-get event :type) "changed")
    (let ((buffer (get-buffer (compactd-context--name session))))
      (when (and buffer (get-buffer-window buffer t))
        (let ((stamp (list (compactd-session-usage-of session :epoch)
                           (compactd-session-usage-of session :current_context_tokens))))
          (unless (equal stamp (buffer-local-value 'compactd-context--stamp buffer))
            (with-current-buffer buffer
              (setq compactd-context--stamp stamp))
            (compactd-context--load buffer)))))))

(add-hook 'compactd-event-functions #'compactd-context--on-event)

(defvar compactd-context-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map (kbd "RET") #'compactd-context-open)
    (define-key map (kbd "TAB") #'compactd-context-toggle)
    (define-key map "n" #'next-line)
    (define-key map "p" #'previous-line)
    (define-key map "P" #'compactd-context-pin)
    (define-key map "c" #'compactd-compact)
    (define-key map "u" #'compactd-undo)
    (define-key map "r" #'compactd-redo)
    (define-key map "s" #'compactd-search)
    (define-key map "w" #'compactd-work)
    map)
  "Keys of `compactd-context-mode'.")

(define-derived-mode compactd-context-mode special-mode "Context"
  "What is in the context of a session, entry by entry.

\\{compactd-context-mode-map}"
  (setq truncate-lines t)
  (setq-local revert-buffer-function
              (lambda (&rest _) (compactd-context--load (current-buffer))))
  (setq header-line-format
        "RET open  TAB text  P pin  c compact  u undo  r redo  s search  w work  g again  q leave"))

(defun compactd-context--name (session)
  "Return the name of the buffer of SESSION's context."
  (format "*compactd context %s*" (compactd-session-id session)))

(defun compactd-context-show (session)
  "Show the context of SESSION."
  (let ((buffer (get-buffer-create (compactd-context--name session))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'compactd-context-mode)
        (compactd-context-mode))
      (setq compactd-context--id (compactd-session-id session)))
    (compactd-context--open buffer (lambda () (pop-to-buffer buffer)))))

(defun compactd-context-read (title text)
  "Show TEXT, to be read, in a buffer of TITLE."
  (with-current-buffer (get-buffer-create (format "*compactd %s*" (compactd-text-clean title)))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (compactd-text-clean text) "\n")
      (goto-char (point-min)))
    (special-mode)
    (visual-line-mode 1)
    (pop-to-buffer (current-buffer))))

(defun compactd-context-read-entry (id entry)
  "Show the message ENTRY of the session ID, also one that was summarised."
  (compactd-request
   "session/expand" (list :session_id id :entry_ids (vector entry))
   (lambda (found)
     (seq-doseq (original (plist-get found :entries))
       (compactd-context-read (plist-get original :entry_id)
                              (compactd-text-message (plist-get original :message)))))))

(provide 'compactd-context)
;;; compactd-context.el ends here
