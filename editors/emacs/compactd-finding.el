;;; compactd-finding.el --- Where the daemon is, and what it is -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The daemon is looked for in the setting, beside this package, in the
;; project's Python environment if you trust it, and on the path.  Here
;; is the log, too.

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

(defcustom compactd-trusted-programs nil
  "Programs of projects that may be run, each as (PATH . SHA-256).
A daemon in a project's Python environment came with whatever was
cloned: it is run only once you said yes, and asked for again when it
changed."
  :group 'compactd
  :type '(alist :key-type file :value-type string)
  :risky t)

(defvar compactd-daemon--distrusted nil
  "Programs that the person said no to in this Emacs, as (PATH . SHA-256).")

(defconst compactd-daemon--marks '(".git" ".hg" "pyproject.toml" "setup.py"))

(defun compactd-daemon--project-folders ()
  "Return the current folder, and those above it up to the project's root.
That is the outermost project below the person's home."
  (let* ((folder (expand-file-name (file-name-as-directory default-directory)))
         (home (file-name-as-directory (file-truename "~")))
         (folders (list folder))
         (kept folders))
    (while (let ((above (file-name-directory (directory-file-name folder))))
             (unless (or (equal above folder) (string-prefix-p above home))
               (setq folder above)))
      (push folder folders)
      (when (seq-some (lambda (mark) (file-exists-p (expand-file-name mark folder)))
                      compactd-daemon--marks)
        (setq kept folders)))
    (reverse kept)))

(defun compactd-daemon--inside-p (path root)
  "Return whether PATH, as written or with its links followed, is in ROOT."
  (let ((tops (list (file-name-as-directory root)
                    (file-name-as-directory (file-truename root)))))
    (seq-some (lambda (each)
                (seq-some (lambda (top) (string-prefix-p top (file-name-as-directory each))) tops))
              (list (expand-file-name path) (file-truename path)))))

(defun compactd-daemon--on-path (name root)
  "Return the program NAME of an absolute path for programs outside ROOT."
  (seq-some (lambda (entry)
              (and (stringp entry)
                   (file-name-absolute-p entry)
                   (let ((path (expand-file-name name entry)))
                     (and (not (compactd-daemon--inside-p entry root))
                          (not (compactd-daemon--inside-p path root))
                          (file-executable-p path)
                          (file-regular-p path)
                          path))))
            exec-path))

(defun compactd-daemon--print (path)
  "Return PATH, links followed, and the hash of its present content."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (insert-file-contents-literally path)
    (cons (file-truename path) (secure-hash 'sha256 (current-buffer)))))

(defun compactd-daemon--trusted-p (path)
  "Return whether the person said yes to PATH as it is now.  Never asks."
  (ignore-errors (and (member (compactd-daemon--print path) compactd-trusted-programs) t)))

(defun compactd-daemon--ask-trust (path)
  "Ask once whether PATH may be run; return the answer.  In batch it is no."
  (let ((print (ignore-errors (compactd-daemon--print path))))
    (cond
     ((or (null print) noninteractive (member print compactd-daemon--distrusted)) nil)
     ((y-or-n-p (format "%s came with this project.  Run it as the compactd daemon? "
                        (compactd-text-clean path)))
      (customize-save-variable 'compactd-trusted-programs
                               (cons print compactd-trusted-programs))
      t)
     (t (push print compactd-daemon--distrusted)
        nil))))

(defun compactd-daemon-places ()
  "Return every place that is looked at, in order, as (FROM PATH COMMAND).
COMMAND is nil where no daemon is, and `untrusted' where one is that
came with the project and that the person did not say yes to."
  (let* ((folders (compactd-daemon--project-folders))
         (root (car (last folders))))
    (cl-flet* ((place (from path)
                 (list from path (and (file-executable-p path) (file-regular-p path)
                                      (list path "serve"))))
               (place-inside (from path)
                 (let ((found (place from path)))
                   (if (and (nth 2 found) (not (compactd-daemon--trusted-p path)))
                       (list from path 'untrusted)
                     found))))
      (if compactd-command
          (let* ((program (car compactd-command))
                 (path (if (file-name-directory program)
                           (expand-file-name program)
                         (compactd-daemon--on-path program root))))
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
                                   (place-inside 'project
                                                 (expand-file-name "bin/compactd" inside)))))
                          '(".venv" "venv"))))
          folders)
         (let ((virtual (getenv "VIRTUAL_ENV")))
           (when (and virtual (file-name-absolute-p virtual))
             (let ((path (expand-file-name "bin/compactd" virtual)))
               (list (if (compactd-daemon--inside-p path root)
                         (place-inside 'environment path)
                       (place 'environment path))))))
         (let ((found (compactd-daemon--on-path "compactd" root)))
           (list (if found (place 'PATH found) (list 'PATH "compactd" nil)))))))))

(defun compactd-daemon-choose (places)
  "Return the first of PLACES with a daemon that may be run, or nil.
Asks about one that came with the project, if it comes first."
  (seq-some (pcase-lambda (`(,from ,path ,command))
              (cond ((consp command) (list from path command))
                    ((and (eq command 'untrusted) (compactd-daemon--ask-trust path))
                     (list from path (list path "serve")))))
            places))

(defun compactd-daemon--advice (places)
  "Return what to do if none of PLACES has a daemon."
  (if (eq (caar places) 'setting)
      (format "the daemon of `compactd-command' cannot be run: %s" (cadar places))
    (if-let ((untrusted (seq-find (lambda (place) (eq (nth 2 place) 'untrusted)) places)))
        (format "%s came with this project and is not run without your yes.  \
M-x compactd-restart asks again in a new Emacs; or set `compactd-command'" (cadr untrusted))
      "no daemon was found.  Install one with `pipx install git+https://example.org/compactd/compactd', or set \
`compactd-command'.  M-x compactd-health tells where was looked")))

;;; Whether it is one

(defun compactd-daemon-judge (result)
  "Return what to say about a daemon that answered `initialize' with RESULT.
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
pipx upgrade compactd" version compactd-protocol-version)))
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
