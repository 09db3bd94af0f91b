;;; compactd.el --- How full a model's context is, and compaction -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The compactd founders

;; Author: The compactd founders
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; URL: https://example.invalid/compactd
;; There is no page of it yet; package-lint wants an address, and this one can be
;; nobody's (RFC 2606).
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; compactd is a daemon that holds conversations with language models, counts
;; their tokens and compacts them before they outgrow the model's window.  This
;; package shows how full the context is, what is in it and what was
;; summarised, compacts after a preview, takes that back, searches what was
;; ever said, and holds the conversation itself in a buffer.
;;
;; M-x compactd offers everything; `compactd-mode' puts the gauge into the mode
;; line.  Nothing is loaded or started before the first command.

;;; Code:

(require 'subr-x)

(declare-function compactd-gauge-face "compactd-session")
(declare-function compactd-gauge-long "compactd-session")
(declare-function compactd-gauge-short "compactd-session")
(declare-function compactd-session-current "compactd-session")

;; For who loads this file without a package's autoloads.
(autoload 'compactd "compactd-commands" nil t)
(autoload 'compactd-start "compactd-commands" nil t)
(autoload 'compactd-gauge "compactd-commands" nil t)
(autoload 'compactd-context "compactd-commands" nil t)
(autoload 'compactd-chat "compactd-commands" nil t)
(autoload 'compactd-compact "compactd-commands" nil t)
(autoload 'compactd-undo "compactd-commands" nil t)
(autoload 'compactd-work "compactd-commands" nil t)
(autoload 'compactd-redo "compactd-commands" nil t)
(autoload 'compactd-switch "compactd-commands" nil t)
(autoload 'compactd-search "compactd-commands" nil t)
(autoload 'compactd-import "compactd-commands" nil t)
(autoload 'compactd-model "compactd-commands" nil t)
(autoload 'compactd-abort "compactd-commands" nil t)
(autoload 'compactd-log "compactd-commands" nil t)
(autoload 'compactd-restart "compactd-commands" nil t)
(autoload 'compactd-health "compactd-health" nil t)

;;; The mode line

(defvar compactd-mode-line-map
  (let ((map (make-sparse-keymap)))
    (define-key map [mode-line mouse-1] #'compactd-context)
    (define-key map [mode-line mouse-3] #'compactd)
    map)
  "Keys of the gauge in the mode line.")

(defun compactd-mode-line ()
  "Return the gauge of the current session for the mode line, or nil."
  (let ((session (and (featurep 'compactd-session) (compactd-session-current))))
    (when session
      (list " "
            (propertize (replace-regexp-in-string "%" "%%" (compactd-gauge-short session))
                        'face (compactd-gauge-face session)
                        'help-echo (concat (string-join (compactd-gauge-long session) "\n")
                                           "\nmouse-1: context, mouse-3: more")
                        'mouse-face 'mode-line-highlight
                        'local-map compactd-mode-line-map)
            " "))))

(defconst compactd-mode-line-segment '(:eval (compactd-mode-line))
  "The gauge as a mode line construct.")

;;;###autoload
(define-minor-mode compactd-mode
  "Show how full the context of the current session is, in the mode line."
  :global t
  :group 'compactd
  (setq global-mode-string (delete compactd-mode-line-segment
                                   (if (listp global-mode-string)
                                       global-mode-string
                                     (list global-mode-string))))
  (when compactd-mode
    (setq global-mode-string
          (append (or global-mode-string '("")) (list compactd-mode-line-segment)))))

(provide 'compactd)
;;; compactd.el ends here
