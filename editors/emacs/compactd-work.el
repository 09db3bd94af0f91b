;;; compactd-work.el --- Where the work of a session stands -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Goal, plan, changed files, checks, errors and decisions, as the daemon
;; derives them from the messages.  Each line names its message.

;;; Code:

(require 'cl-lib)
(require 'compactd-session)

(declare-function compactd-context-read-entry "compactd-context")

(defvar-local compactd-work--id nil "The session that this buffer is about.")

(defconst compactd-work--most
  '(:constraints 3 :tasks 8 :files 8 :checks 5 :errors 5 :attempts 2 :decisions 3)
  "How many of each kind are shown.")

(defconst compactd-work--status
  '(("open" . "open") ("in_progress" . "in progress") ("done" . "done") ("dropped" . "dropped"))
  "The status of a task in words.")

(defconst compactd-work--checks
  '(("test" . "tests") ("build" . "build") ("lint" . "lint") ("types" . "type check")
    ("other" . "check"))
  "What was checked, in words.")

(defconst compactd-work--outcomes
  '(("passed" . "passed") ("failed" . "failed") ("unknown" . "ended, result unknown"))
  "The outcome of a check in words.")

(defun compactd-work--word (value words)
  "Return VALUE in the words of the alist WORDS."
  (or (cdr (assoc value words)) value))

;; A row is a property list: :text, which may be shortened; :lead and :note, words
;; before and after it that are not; :entry, the message that says so; :face.

(defun compactd-work--plain (item)
  "Return the row of ITEM, which is a text alone."
  (list :text (plist-get item :text) :entry (plist-get item :entry_id)))

(defun compactd-work--file (change)
  "Return the row of CHANGE, a changed file."
  (let ((kind (plist-get change :kind)))
    (list :text (plist-get change :path)
          :note (format "%s, %s, %s"
                        (if (equal kind "edited")
                            (compactd-text-count (plist-get change :edits) "edit")
                          kind)
                        (if (eq t (plist-get change :committed)) "committed" "uncommitted")
                        (if (eq t (plist-get change :checked)) "checked" "unchecked"))
          :entry (plist-get change :last_entry_id))))

(defun compactd-work--check (check)
  "Return the row of CHECK, the last run of a check."
  (list :lead (format "%s %s: "
                      (compactd-work--word (plist-get check :kind) compactd-work--checks)
                      (compactd-work--word (plist-get check :outcome) compactd-work--outcomes))
        :text (plist-get check :command)
        :note (and (eq t (plist-get check :stale)) "files changed since")
        :entry (plist-get check :entry_id)))

(defun compactd-work--error (failure)
  "Return the row of FAILURE, an open error."
  (list :text (format "%s (%s)" (plist-get failure :text) (plist-get failure :command))
        :entry (plist-get failure :entry_id)
        :face 'compactd-over))

(defun compactd-work--decision (decision)
  "Return the row of DECISION."
  (list :text (concat (plist-get decision :text)
                      (and (plist-get decision :was)
                           (format " (before: %s)" (plist-get decision :was))))
        :entry (plist-get decision :entry_id)))

(defun compactd-work--task (task)
  "Return the row of TASK."
  (list :lead (format "%-13s" (compactd-work--word (plist-get task :status) compactd-work--status))
        :text (plist-get task :text)
        :entry (plist-get task :entry_id)))

(defun compactd-work--newest (items kind noun row)
  "Return the last of ITEMS as rows, each from the function ROW.
If there are more than `compactd-work--most' shows of KIND, a row before
them says how many there are of NOUN."
  (let ((most (plist-get compactd-work--most kind))
        (count (length items)))
    (append (and (> count most)
                 (list (list :text (format "%s, the last %d:"
                                           (compactd-text-count count noun) most))))
            (mapcar row (seq-drop items (max 0 (- count most)))))))

(defun compactd-work--plan (plan)
  "Return the rows of PLAN: how many tasks are done, and the tasks in their order.
Of too many, the first unfinished and the last finished ones are shown."
  (when (> (length plan) 0)
    (let* ((most (plist-get compactd-work--most :tasks))
           (is-finished (lambda (task) (member (plist-get task :status) '("done" "dropped"))))
           (unfinished (seq-take (seq-remove is-finished plan) most))
           (finished (seq-filter is-finished plan))
           (last (seq-drop finished (max 0 (- (length finished) (- most (length unfinished))))))
           (shown (seq-filter (lambda (task) (or (memq task unfinished) (memq task last))) plan)))
      (cons (list :text (format "%s of %s done%s"
                                (compactd-text-number
                                 (seq-count (lambda (task) (equal (plist-get task :status) "done"))
                                            plan))
                                (compactd-text-count (length plan) "task")
                                (if (< (length shown) (length plan))
                                    (format ", %d of them shown" (length shown))
                                  "")))
            (mapcar #'compactd-work--task shown)))))

(defun compactd-work-rows (work)
  "Return what to show of WORK: conses of a label and its rows.
Kinds that are empty are left out."
  (let ((goal (plist-get work :goal))
        (request (plist-get work :request)))
    (seq-filter
     #'cdr
     (list
      (cons "goal" (and goal (list (list :text goal))))
      (cons "request" (and request (not (equal request goal)) (list (list :text request))))
      (cons "constraints" (compactd-work--newest (plist-get work :constraints) :constraints
                                                 "constraint" #'compactd-work--plain))
      (cons "plan" (compactd-work--plan (plist-get work :plan)))
      (cons "files" (compactd-work--newest (plist-get work :changes) :files
                                           "changed file" #'compactd-work--file))
      (cons "checks" (compactd-work--newest
                      ;; Two checks of one call may have the same row.
                      (delete-dups (mapcar #'compactd-work--check (plist-get work :checks)))
                      :checks "check" #'identity))
      (cons "open errors" (compactd-work--newest (plist-get work :open_errors) :errors
                                                 "open error" #'compactd-work--error))
      (cons "failed" (compactd-work--newest (plist-get work :failed_attempts) :attempts
                                            "failed attempt" #'compactd-work--plain))
      (cons "decisions" (compactd-work--newest (plist-get work :decisions) :decisions
                                               "decision" #'compactd-work--decision))
      (cons "now" (and (plist-get work :now)
                       (list (compactd-work--plain (plist-get work :now)))))))))

(defun compactd-work--line (label row width)
  "Return ROW as one line behind LABEL, in WIDTH columns."
  (let* ((entry (plist-get row :entry))
         (head (format "%-13s%s" label (or (plist-get row :lead) "")))
         (tail (concat (and (plist-get row :note) (concat "   " (plist-get row :note)))
                       (and entry (format " [%s]" (compactd-text-clean entry)))))
         (text (replace-regexp-in-string "[ \t\r]*\n[ \t\r\n]*" " " (plist-get row :text) t t)))
    (propertize (concat head
                        (compactd-text-line text (max 12 (- width (length head) (length tail))))
                        tail)
                'face (plist-get row :face)
                'compactd-entry-id entry)))

(defun compactd-work--insert (work width)
  "Insert the lines of WORK, each in WIDTH columns."
  (pcase-dolist (`(,label . ,rows) (compactd-work-rows work))
    (dolist (row rows)
      (insert (compactd-work--line label row width) "\n")
      (setq label "")))
  (when (bobp)
    (insert "Nothing yet: no message of this session says what is to be done.\n")))

(defun compactd-work-open ()
  "Show the message that this line names."
  (interactive)
  (let ((entry (get-text-property (line-beginning-position) 'compactd-entry-id)))
    (unless entry
      (user-error "This line names no message"))
    (require 'compactd-context)
    (compactd-context-read-entry compactd-work--id entry)))

(defun compactd-work--ask (id then)
  "Ask where the work of the session ID stands; call THEN with it."
  (compactd-request
   "agent/state" (list :session_id id :work t)
   (lambda (state)
     (if (plist-get state :work)
         (funcall then (plist-get state :work))
       (message "compactd: this daemon is too old to say where the work stands")))))

(defun compactd-work--show (buffer work)
  "Show WORK in BUFFER, if it is still there."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let ((inhibit-read-only t)
            (line (line-number-at-pos)))
        (erase-buffer)
        (compactd-work--insert work (- (window-width (get-buffer-window buffer t)) 2))
        (goto-char (point-min))
        (forward-line (1- line))))))

(defvar compactd-work-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map (kbd "RET") #'compactd-work-open)
    (define-key map "n" #'next-line)
    (define-key map "p" #'previous-line)
    map)
  "Keys of `compactd-work-mode'.")

(define-derived-mode compactd-work-mode special-mode "Work"
  "Where the work of a session stands.

\\{compactd-work-mode-map}"
  (setq truncate-lines t)
  (setq-local revert-buffer-function
              (lambda (&rest _)
                (let ((buffer (current-buffer)))
                  (compactd-work--ask compactd-work--id
                                      (lambda (work) (compactd-work--show buffer work))))))
  (setq header-line-format "RET opens the message  g again  q leave"))

(defun compactd-work-show (session)
  "Show where the work of SESSION stands."
  (let ((id (compactd-session-id session)))
    (compactd-work--ask
     id
     (lambda (work)
       (let ((buffer (get-buffer-create (format "*compactd work %s*" id))))
         (with-current-buffer buffer
           (unless (derived-mode-p 'compactd-work-mode)
             (compactd-work-mode))
           (setq compactd-work--id id))
         (pop-to-buffer buffer)
         (compactd-work--show buffer work))))))

(provide 'compactd-work)
;;; compactd-work.el ends here
