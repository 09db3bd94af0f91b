;;; compactd-finding.el --- Where the daemon is, and what it is -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The daemon is looked for in the setting, beside this package, in the
;; project's Python environment, and on the path.  Here is the log, too.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'compactd-protocol)
(require 'compactd-text)

(defgroup compactd nil
  "How full the context of a conversation with a model is, and its compaction."
  :group 'tools
  :prefix "compactd-")

(defcustom compactd-command nil
  "The daemon and its arguments.
Nil: it is looked for beside this package, in the project's Python
environment, and on the variable `exec-path'."
  :type '(choice (const :tag "Look for it" nil)
                 (repeat :tag "Program and arguments" string))
  :risky t)

(defcustom compactd-environment nil
  "Added to the daemon's environment, each as NAME=VALUE."
  :group 'compactd
  :type '(repeat string)
  :risky t)

(defcustom compactd-trace nil
  "Whether the log holds what goes over the wire, with all that is said."
  :group 'compactd
  :type 'boolean)

(defvar compactd-daemon--library (or load-file-name buffer-file-name)
  "Where this package is.")

;;; The log

(defconst compactd-daemon--log-lines 2000)

(defun compactd-log-buffer ()
  "Return the buffer of the log."
  (or (get-buffer "*compactd log*")
      (with-current-buffer (get-buffer-create "*compactd log*")
        (special-mode)
        (buffer-disable-undo)
        (current-buffer))))

(defun compactd-log-add (kind text)
  "Add the lines of TEXT to the log, as KIND."
  (with-current-buffer (compactd-log-buffer)
    (let ((inhibit-read-only t))
      (save-excursion
        (goto-char (point-max))
        (dolist (line (split-string text "\n" t))
          (insert (format-time-string "%H:%M:%S ")
                  (format "%-6s " kind)
                  (compactd-text-clean (substring line 0 (min (length line) 2000)))
                  "\n"))
        (goto-char (point-max))
        (forward-line (- compactd-daemon--log-lines))
        (delete-region (point-min) (point))))))

;;; Where it is

(defun compactd-daemon--project-folders ()
  "Return the current folder, and those above it up to the project's root."
  (let* ((folder (expand-file-name default-directory))
         (root (seq-some (lambda (mark) (locate-dominating-file folder mark))
                         '(".git" ".hg" "pyproject.toml" "setup.py")))
         (root (and root (file-name-as-directory (expand-file-name root))))
         (folders (list folder)))
    (while (and root (string-prefix-p root folder) (not (equal root folder)))
      (setq folder (file-name-directory (directory-file-name folder)))
      (push folder folders))
    (nreverse folders)))

(defun compactd-daemon-places ()
  "Return every place that is looked at, in order, as (FROM PATH COMMAND).
COMMAND is nil where no daemon is."
  (cl-flet ((place (from path)
              (list from path (and (file-executable-p path) (list path "serve")))))
    (if compactd-command
        (let* ((program (car compactd-command))
               (path (if (file-name-directory program)
                         (expand-file-name program)
                       (executable-find program))))
          (list (list 'setting program
                      (and path (file-executable-p path)
                           (cons path (cdr compactd-command))))))
      (append
       (when compactd-daemon--library
         (list (place 'bundled
                      (expand-file-name "bin/compactd"
                                        (file-name-directory compactd-daemon--library)))))
       (seq-mapcat
        (lambda (folder)
          (delq nil
                (mapcar (lambda (name)
                          (let ((inside (expand-file-name name folder)))
                            (and (file-directory-p inside)
                                 (place 'project (expand-file-name "bin/compactd" inside)))))
                        '(".venv" "venv"))))
        (compactd-daemon--project-folders))
       (let ((virtual (getenv "VIRTUAL_ENV")))
         (and virtual (not (equal virtual ""))
              (list (place 'environment (expand-file-name "bin/compactd" virtual)))))
       (let ((found (executable-find "compactd")))
         (list (if found (place 'PATH found) (list 'PATH "compactd" nil))))))))

(defun compactd-daemon--advice (places)
  "Return what to do where none of PLACES has a daemon."
  (if (eq (caar places) 'setting)
      (format "the daemon of `compactd-command' cannot be run: %s" (cadar places))
    "no daemon was found.  Install one with `pip install compactd', or set \
`compactd-command'.  M-x compactd-health tells where was looked"))

;;; Whether it is one

(defun compactd-daemon-judge (result)
  "Return what is to be said of a daemon that answered `initialize' with RESULT.
That is (problem . TEXT), (warning . TEXT), or nil."
  (let* ((block (plist-get (plist-get (plist-get result :capabilities) :experimental)
                           :compactd))
         (version (plist-get block :protocol_version))
         (theirs (and (stringp version) (ignore-errors (version-to-list version))))
         (ours (version-to-list compactd-protocol-version)))
    (cond
     ((null theirs)
      '(problem . "what was started is no compactd, or one from before its first release"))
     ((< (car theirs) (car ours))
      (cons 'problem
            (format "the daemon speaks protocol %s, this package %s.  Update the daemon: \
pip install --upgrade compactd" version compactd-protocol-version)))
     ((> (car theirs) (car ours))
      (cons 'problem
            (format "the daemon speaks protocol %s, this package %s.  Update this package"
                    version compactd-protocol-version)))
     ((version-list-< theirs ours)
      (cons 'warning
            (format "the daemon is older than this package (protocol %s, not %s): \
some commands may be refused" version compactd-protocol-version))))))

(provide 'compactd-finding)
;;; compactd-finding.el ends here
