;;; compactd-preview.el --- A compaction before it is done -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What goes, what stays, in tokens.  Then done, or not.

;;; Code:

(require 'compactd-context)

(defvar-local compactd-preview--wish nil "Focus and number of messages kept: (FOCUS . KEEP).")
(defvar-local compactd-preview--plan nil "Result of the dry run.")

(defun compactd-preview-params (session focus keep)
  "Return the parameters of a compaction of SESSION with FOCUS and KEEP."
  (append (list :session_id (compactd-session-id session))
          (and keep (list :keep_messages keep))
          (and focus (list :instructions focus))))

(defun compactd-preview--section (title entries face)
  "Insert ENTRIES under TITLE in FACE."
  (insert (propertize (format "%s (%d)" title (length entries)) 'face face) "\n")
  (dolist (entry entries)
    (compactd-context--insert-head entry "  ")))

(defun compactd-preview--draw (plan entries)
  "Show PLAN, and which of ENTRIES would go and which would stay."
  (let* ((inhibit-read-only t)
         (pinned (append (plist-get plan :pinned_entry_ids) nil))
         (first (plist-get plan :first_kept_entry_id))
         (kept (zerop (plist-get plan :messages_removed)))
         goes stays holds)
    (seq-doseq (entry entries)
      (setq kept (or kept (equal (plist-get entry :entry_id) first)))
      (cond ((member (plist-get entry :entry_id) pinned) (push entry holds))
            (kept (push entry stays))
            (t (push entry goes))))
    (erase-buffer)
    (insert (propertize (format "Tokens: %s → %s (saves %s)"
                                (compactd-text-number (plist-get plan :tokens_before))
                                (compactd-text-number (plist-get plan :tokens_after))
                                (compactd-text-number (plist-get plan :tokens_saved)))
                        'face 'compactd-head)
            "\n"
            (format "how       %s%s%s\n"
                    (plist-get plan :strategy)
                    (if (plist-get plan :model)
                        (concat ", by " (compactd-text-clean (plist-get plan :model)))
                      ", no model")
                    (if (numberp (plist-get plan :cost))
                        (format " · $%.4f" (plist-get plan :cost))
                      ""))
            (format "messages  %d → %d\n" (plist-get plan :messages_before)
                    (plist-get plan :messages_after))
            (format "focus     %s\n\n"
                    (if (car compactd-preview--wish)
                        (compactd-text-line (car compactd-preview--wish) 60)
                      "none (f gives one)")))
    (compactd-preview--section "summarised: goes, can be found, opened and undone"
                               (nreverse goes) 'compactd-faint)
    (compactd-preview--section "pinned: stays" (nreverse holds) 'compactd-pinned)
    (compactd-preview--section "kept: stays word for word" (nreverse stays) 'compactd-summary)
    (goto-char (point-min))))

(defun compactd-preview-run (session focus keep)
  "Compact SESSION with FOCUS and KEEP.  The result comes as an event."
  (compactd-session-request
   "session/compact" (compactd-preview-params session focus keep)
   (lambda (result)
     (unless (eq t (plist-get result :compacted))
       (message "No compaction needed: %s"
                (compactd-text-clean (plist-get result :reason)))))
   (lambda (failure)
     (if (eql (plist-get failure :code) -32800)
         (message "compactd: the compaction was cancelled; nothing was changed")
       (compactd-say-failure failure)))))

(defun compactd-preview-do ()
  "Compact as it is shown."
  (interactive)
  (let ((session (gethash compactd-context--id compactd-sessions))
        (wish compactd-preview--wish))
    (quit-window)
    (when session
      (compactd-preview-run session (car wish) (cdr wish)))))

(defun compactd-preview--again (focus keep)
  "Show the preview with FOCUS and KEEP."
  (compactd-preview-show (gethash compactd-context--id compactd-sessions) focus keep))

(defun compactd-preview-more ()
  "Keep more messages word for word."
  (interactive)
  (compactd-preview--again (car compactd-preview--wish)
                           (+ 2 (plist-get compactd-preview--plan :kept_messages))))

(defun compactd-preview-less ()
  "Keep fewer messages word for word."
  (interactive)
  (compactd-preview--again (car compactd-preview--wish)
                           (max 1 (- (plist-get compactd-preview--plan :kept_messages) 2))))

(defun compactd-preview-focus (focus)
  "Let the summary look at FOCUS most."
  (interactive (list (read-string "Focus of the summary: " (car compactd-preview--wish))))
  (compactd-preview--again (and (not (string-blank-p focus)) focus)
                           (cdr compactd-preview--wish)))

(defvar compactd-preview-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map (kbd "RET") #'compactd-preview-do)
    (define-key map (kbd "TAB") #'compactd-context-toggle)
    (define-key map "+" #'compactd-preview-more)
    (define-key map "-" #'compactd-preview-less)
    (define-key map "f" #'compactd-preview-focus)
    map)
  "Keys of `compactd-preview-mode'.")

(define-derived-mode compactd-preview-mode special-mode "Compact?"
  "A compaction before it is done.

\\{compactd-preview-mode-map}"
  (setq truncate-lines t)
  (setq header-line-format
        "Compact?  RET do it  + keep more  - keep less  f focus  TAB text  q leave it"))

(defun compactd-preview-show (session focus keep)
  "Show what a compaction of SESSION with FOCUS and KEEP would do."
  (compactd-request
   "session/compact"
   (append (compactd-preview-params session focus keep) (list :dry_run t))
   (lambda (plan)
     (if (not (eq t (plist-get plan :compacted)))
         (message "No compaction needed: %s" (compactd-text-clean (plist-get plan :reason)))
       (compactd-request
        "session/history" (list :session_id (compactd-session-id session) :in_context t)
        (lambda (result)
          (with-current-buffer (get-buffer-create "*compactd preview*")
            (compactd-preview-mode)
            (setq compactd-context--id (compactd-session-id session)
                  compactd-preview--wish (cons focus keep)
                  compactd-preview--plan plan)
            (pop-to-buffer (current-buffer))
            (compactd-preview--draw plan (plist-get result :entries)))))))))

(provide 'compactd-preview)
;;; compactd-preview.el ends here
