;;; compactd-tools.el --- What the model may do here, with consent -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The tools of chat: read a file, change one, run a command.

;;; Code:

(require 'cl-lib)
(require 'diff)
(require 'compactd-session)

(defcustom compactd-tool-policies
  '((read_file . ask) (edit_file . ask) (run_command . ask))
  "What each tool of chat may do: ask first, go on, or never."
  :group 'compactd
  :risky t
  :type '(alist :key-type symbol
                :value-type (choice (const ask) (const allow) (const deny))))

(defconst compactd-tools--most-chars 100000)
(defconst compactd-tools--command-seconds 120)

(defconst compactd-tools-schemas
  [(:name "read_file" :description "Reads a text file of the workspace."
    :input_schema
    (:type "object" :required ["path"]
     :properties (:path (:type "string" :description "Relative to the workspace.")
                  :first_line (:type "integer" :description "1 is the first.")
                  :last_line (:type "integer" :description "Inclusive."))))
   (:name "edit_file"
    :description "Replaces a text in a file, or makes a new file where old_text is empty. The person sees a diff."
    :input_schema
    (:type "object" :required ["path" "old_text" "new_text"]
     :properties (:path (:type "string" :description "Relative to the workspace.")
                  :old_text (:type "string" :description "Exactly as in the file, once in it.")
                  :new_text (:type "string" :description "The new text."))))
   (:name "run_command"
    :description "Runs a shell command in the workspace, with the person's consent."
    :input_schema
    (:type "object" :required ["command"]
     :properties (:command (:type "string" :description "For the shell."))))]
  "The tools of chat, as the model sees them.")

(defvar compactd-tools--granted nil
  "Pairs of session and tool for which the person said: always.")

(defvar compactd-tools-directory nil
  "The workspace that tools work in; nil: where the chat was begun.")

(defun compactd-tools--failed (text)
  "Return an answer for what went wrong, with TEXT."
  (list :content text :is_error t))

(defun compactd-tools--cut (text)
  "Return TEXT, or as much of it as a model should get."
  (if (<= (length text) compactd-tools--most-chars)
      text
    (format "%s\n[cut: %d more characters]" (substring text 0 compactd-tools--most-chars)
            (- (length text) compactd-tools--most-chars))))

(defun compactd-tools-resolve (path workspace)
  "Return the whole path that PATH means in WORKSPACE, and whether it is inside."
  (let* ((root (file-name-as-directory (file-truename workspace)))
         (whole (file-truename (expand-file-name path root))))
    (cons whole (or (string-prefix-p root whole)
                    (equal (file-name-as-directory whole) root)))))

(defun compactd-tools--when-free (act)
  "Call ACT when the person is not in the middle of a question."
  (if (active-minibuffer-window)
      (run-at-time 0.3 nil #'compactd-tools--when-free act)
    (funcall act)))

(defun compactd-tools--consent (call question must-ask yes answer)
  "Ask QUESTION for CALL by its policy; call YES, or ANSWER with a refusal.
MUST-ASK: a policy or an earlier consent is not enough."
  (let* ((name (plist-get call :name))
         (policy (or (alist-get (intern name) compactd-tool-policies) 'ask))
         (key (cons (plist-get call :session_id) name)))
    (cond
     ((eq policy 'deny)
      (funcall answer (compactd-tools--failed "the person's settings refuse this tool")))
     ((and (not must-ask) (or (eq policy 'allow) (member key compactd-tools--granted)))
      (funcall yes))
     (t
      (compactd-tools--when-free
       (lambda ()
         (pcase (condition-case nil
                    (car (read-multiple-choice
                          question '((?y "yes") (?a "always in this session") (?n "no"))))
                  (quit ?n))
           (?y (funcall yes))
           (?a (push key compactd-tools--granted)
               (funcall yes))
           (_ (funcall answer (compactd-tools--failed "the person refused"))))))))))

(defun compactd-tools--read-file (call arguments workspace answer)
  "Read the file that ARGUMENTS of CALL name in WORKSPACE; call ANSWER."
  (pcase-let ((`(,path . ,inside) (compactd-tools-resolve (plist-get arguments :path) workspace)))
    (compactd-tools--consent
     call
     (if inside
         (format "Let the model read %s? " (compactd-text-line (plist-get arguments :path) 60))
       (format "Let the model read %s, OUTSIDE the workspace? " (compactd-text-line path 60)))
     (not inside)
     (lambda ()
       (funcall
        answer
        (condition-case problem
            (with-temp-buffer
              (let ((coding-system-for-read 'utf-8))
                (insert-file-contents path))
              (let ((first (plist-get arguments :first_line))
                    (last (plist-get arguments :last_line)))
                (when (integerp last)
                  (goto-char (point-min))
                  (forward-line last)
                  (delete-region (point) (point-max)))
                (when (integerp first)
                  (goto-char (point-min))
                  (forward-line (1- first))
                  (delete-region (point-min) (point))))
              (list :content (compactd-tools--cut (buffer-string))))
          (error (compactd-tools--failed (error-message-string problem))))))
     answer)))

;;; Edits

(defvar-local compactd-tools--decide nil
  "Called with t or nil when the person decided about the edit of this buffer.")

(defun compactd-tools-plan-edit (path old new)
  "Return (BEFORE . AFTER) of replacing OLD by NEW in the file PATH.
A string instead says what is wrong."
  (let ((before (and (file-exists-p path)
                     (with-temp-buffer
                       (let ((coding-system-for-read 'utf-8))
                         (insert-file-contents path))
                       (buffer-string)))))
    (cond
     ((and (null before) (string-empty-p old)) (cons "" new))
     ((null before) "there is no such file")
     ((string-empty-p old) "the file is there: old_text must name what is replaced")
     (t
      (let ((at (string-search old before)))
        (cond
         ((null at) "old_text is not in the file")
         ((string-search old before (1+ at))
          "old_text is in the file more than once: give more of it")
         (t (cons before (concat (substring before 0 at) new
                                 (substring before (+ at (length old))))))))))))

(defun compactd-tools--write (path text)
  "Put TEXT into PATH, through its buffer."
  (make-directory (file-name-directory path) t)
  (with-current-buffer (find-file-noselect path)
    (let ((inhibit-read-only t)
          (from (generate-new-buffer " *compactd new text*")))
      (unwind-protect
          (progn
            (with-current-buffer from (insert text))
            (replace-buffer-contents from))
        (kill-buffer from)))
    (let ((require-final-newline nil))
      (save-buffer))))

(defun compactd-tools-accept ()
  "Take the edit that is shown."
  (interactive)
  (funcall compactd-tools--decide t))

(defun compactd-tools-refuse ()
  "Refuse the edit that is shown."
  (interactive)
  (funcall compactd-tools--decide nil))

(defvar compactd-tools-edit-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "y" #'compactd-tools-accept)
    (define-key map "n" #'compactd-tools-refuse)
    (define-key map "q" #'compactd-tools-refuse)
    map)
  "Keys of `compactd-tools-edit-mode'.")

(define-minor-mode compactd-tools-edit-mode
  "An edit that the model asks for: take it, or refuse it."
  :lighter " Edit?")

(defun compactd-tools--diff (before after)
  "Return a buffer with the difference between the texts BEFORE and AFTER."
  (let ((old (generate-new-buffer " before"))
        (new (generate-new-buffer " after")))
    (unwind-protect
        (progn
          (with-current-buffer old (insert before))
          (with-current-buffer new (insert after))
          (let ((buffer (diff-no-select old new nil 'noasync
                                        (generate-new-buffer "*compactd edit*"))))
            buffer))
      (kill-buffer old)
      (kill-buffer new))))

(defun compactd-tools--ask-edit (path plan answer)
  "Show the edit PLAN of PATH; call ANSWER when the person decided."
  (let* ((windows (current-window-configuration))
         (buffer (compactd-tools--diff (car plan) (cdr plan)))
         (over nil)
         (decide
          (lambda (accepted)
            (unless over
              (setq over t)
              (set-window-configuration windows)
              (when (buffer-live-p buffer)
                (kill-buffer buffer))
              (funcall
               answer
               (if (not accepted)
                   (compactd-tools--failed "the person refused the edit")
                 (condition-case problem
                     (progn (compactd-tools--write path (cdr plan))
                            (list :content "done"))
                   (error (compactd-tools--failed (error-message-string problem))))))))))
    (with-current-buffer buffer
      (compactd-tools-edit-mode 1)
      (setq compactd-tools--decide decide
            header-line-format
            (concat " " (replace-regexp-in-string
                         "%" "%%" (compactd-text-line (abbreviate-file-name path) 60))
                    ":  y take it  n refuse it"))
      (add-hook 'kill-buffer-hook (lambda () (funcall decide nil)) nil t))
    (pop-to-buffer buffer)
    (goto-char (point-min))))

(defun compactd-tools--edit-file (_call arguments workspace answer)
  "Change the file that ARGUMENTS name in WORKSPACE; call ANSWER."
  (pcase-let* ((`(,path . ,inside) (compactd-tools-resolve (plist-get arguments :path) workspace))
               (plan (compactd-tools-plan-edit path
                                               (or (plist-get arguments :old_text) "")
                                               (or (plist-get arguments :new_text) "")))
               (policy (or (alist-get 'edit_file compactd-tool-policies) 'ask)))
    (cond
     ((stringp plan) (funcall answer (compactd-tools--failed plan)))
     ((eq policy 'deny)
      (funcall answer (compactd-tools--failed "the person's settings refuse this tool")))
     ((and (eq policy 'allow) inside)
      (compactd-tools--write path (cdr plan))
      (funcall answer (list :content "done")))
     (t (compactd-tools--when-free
         (lambda () (compactd-tools--ask-edit path plan answer)))))))

(defun compactd-tools--run-command (call arguments workspace answer)
  "Run the command of ARGUMENTS of CALL in WORKSPACE; call ANSWER."
  (let ((command (plist-get arguments :command)))
    (compactd-tools--consent
     call (format "Let the model run: %s " (compactd-text-line command 200)) nil
     (lambda ()
       (let* ((default-directory workspace)
              (buffer (generate-new-buffer " *compactd command*"))
              (process (make-process
                        :name "compactd-command" :buffer buffer :noquery t
                        :connection-type 'pipe :coding 'utf-8
                        :command (list shell-file-name shell-command-switch command)
                        :sentinel
                        (lambda (process _change)
                          (unless (process-live-p process)
                            (let ((code (process-exit-status process))
                                  (said (with-current-buffer buffer (buffer-string))))
                              (kill-buffer buffer)
                              (funcall answer
                                       (append
                                        (list :content
                                              (compactd-tools--cut
                                               (if (eql code 0)
                                                   said
                                                 (format "[exit code %d]\n%s" code said))))
                                        (and (not (eql code 0)) (list :is_error t))))))))))
         ;; It may have ended already.
         (ignore-errors (process-send-eof process))
         (run-at-time compactd-tools--command-seconds nil
                      (lambda () (when (process-live-p process) (kill-process process))))))
     answer)))

(defun compactd-tools-execute (call answer)
  "Run the tool of CALL; ANSWER is called once, maybe much later."
  (let* ((name (plist-get call :name))
         (arguments (plist-get call :arguments))
         (known (assoc name '(("read_file" :path compactd-tools--read-file)
                              ("edit_file" :path compactd-tools--edit-file)
                              ("run_command" :command compactd-tools--run-command))))
         (workspace (or compactd-tools-directory
                        (compactd-tools--workspace (plist-get call :session_id)))))
    (compactd-log-add "life" (format "the model asked for %s" name))
    (cond
     ((null known)
      (funcall answer (compactd-tools--failed (format "there is no tool %s here" name))))
     ((not (stringp (ignore-errors (plist-get arguments (nth 1 known)))))
      (funcall answer (compactd-tools--failed
                       (format "%s is missing" (substring (symbol-name (nth 1 known)) 1)))))
     (t
      (condition-case problem
          (funcall (nth 2 known) call arguments workspace answer)
        (error (funcall answer (compactd-tools--failed (error-message-string problem)))))))))

(defun compactd-tools--workspace (id)
  "Return the folder that the chat of the session ID was begun in."
  (let ((buffer (get-buffer (format "*compactd chat %s*" id))))
    (if buffer
        (buffer-local-value 'default-directory buffer)
      default-directory)))

(provide 'compactd-tools)
;;; compactd-tools.el ends here
