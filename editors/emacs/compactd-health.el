;;; compactd-health.el --- What works here -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; And what to do where it does not.

;;; Code:

(require 'compactd-session)

(defun compactd-health--places ()
  "Return lines of where the daemon was looked for."
  (let ((found nil))
    (append
     (mapcar (pcase-lambda (`(,from ,path ,command))
               (cond
                ((eq command 'untrusted)
                 (format "         %s: %s came with the project, and you did not say yes to it"
                         from path))
                ((and command (not found))
                 (setq found t)
                 (format "OK       %s: %s" from path))
                (command (format "         %s: %s (not used: one above is)" from path))
                (t (format "         %s: nothing at %s" from path))))
             (compactd-daemon-places))
     (unless found
       (list "ERROR    no daemon was found"
             "         pipx install git+https://example.org/compactd/compactd (or into the project's .venv)"
             "         or name it: (setq compactd-command '(\"/path/to/compactd\" \"serve\"))")))))

(defun compactd-health--daemon (lines)
  "Return LINES and the word of the daemon about itself."
  (let ((done nil)
        (said nil)
        (deadline (+ (float-time) compactd-start-timeout 2)))
    (compactd-request
     "daemon/info" nil
     (lambda (info)
       (setq done t
             said (list (format "OK       compactd %s, protocol %s, pid %d"
                                (plist-get info :version) (plist-get info :protocol_version)
                                (plist-get info :pid))
                        (format "         sessions are kept in %s"
                                (plist-get (plist-get info :paths) :data)))))
     (lambda (failure)
       (setq done t
             said (list (format "ERROR    the daemon does not work: %s"
                                (plist-get failure :message))
                        "         M-x compactd-log, M-x compactd-restart"))))
    (while (and (not done) (< (float-time) deadline))
      (accept-process-output nil 0.02))
    (append lines
            (or said (list "ERROR    the daemon did not answer"))
            (and (eq compactd-daemon-status 'ready) compactd-daemon-problem
                 (list (concat "WARNING  " compactd-daemon-problem))))))

(defun compactd-health-lines ()
  "Return what works here, line by line."
  (let* ((places (compactd-health--places))
         (there (seq-some (lambda (line) (string-prefix-p "OK" line)) places)))
    (append
     (list (format "%s Emacs %s" (if (>= emacs-major-version 28) "OK      " "ERROR   ")
                   emacs-version)
           (format "%s native JSON" (if (fboundp 'json-parse-buffer) "OK      " "WARNING "))
           (format "%s transient%s" (if (require 'transient nil t) "OK      " "        ")
                   (if (featurep 'transient) "" " is not there: not needed")))
     (if there (compactd-health--daemon places) places)
     (list (if compactd-model
               (format "OK       model of new sessions: %s"
                       (if (stringp compactd-model) compactd-model
                         (plist-get compactd-model :id)))
             "         no model is set: a new session has none until M-x compactd-model")))))

;;;###autoload
(defun compactd-health ()
  "Say what works here, and what to do where it does not."
  (interactive)
  (let ((lines (compactd-health-lines)))
    (with-current-buffer (get-buffer-create "*compactd health*")
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (compactd-text-clean (string-join lines "\n")) "\n")
        (goto-char (point-min)))
      (special-mode)
      (if noninteractive
          (princ (buffer-string))
        (pop-to-buffer (current-buffer))))))

(provide 'compactd-health)
;;; compactd-health.el ends here
