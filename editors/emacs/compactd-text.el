;;; compactd-text.el --- Text for the screen -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What others wrote, made harmless; numbers as a person reads them.

;;; Code:

(require 'subr-x)
(require 'seq)

(defconst compactd-text--invisible
  (concat "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f"
          "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
  "What would not show itself: controls, and marks that turn the writing direction.")

(defun compactd-text-clean (text)
  "Return TEXT with each character that would not show itself written out.
Line ends and tabs stay; an escape becomes `<1b>'."
  (let ((text (replace-regexp-in-string "\r\n" "\n" (or text "") t t)))
    (if (not (string-match-p compactd-text--invisible text))
        text
      (replace-regexp-in-string
       compactd-text--invisible
       (lambda (char) (format "<%02x>" (aref char 0)))
       text t t))))

(defun compactd-text-line (text width)
  "Return the first line of TEXT that is not blank, in at most WIDTH columns."
  (let* ((text (or text ""))
         (start (or (string-match-p "[^ \t\n\r]" text) (length text)))
         (end (or (string-search "\n" text start) (length text)))
         (first (compactd-text-clean
                 (string-trim-right (substring text start (min end (+ start (* 3 width))))))))
    ;; Each of these is slow, and seldom needed.
    (when (string-match-p "\t\\|  " first)
      (setq first (replace-regexp-in-string "[ \t]+" " " first t t)))
    (if (<= (string-width first) width)
        first
      (truncate-string-to-width first width nil nil "…"))))

(defun compactd-text-number (number)
  "Return NUMBER with its thousands apart, `?' if nothing is known."
  (if (not (numberp number))
      "?"
    (let ((digits (number-to-string (round number))))
      (while (string-match "\\`\\(.*[0-9]\\)\\([0-9]\\{3\\}\\)" digits)
        (setq digits (concat (match-string 1 digits) ","
                             (substring digits (match-beginning 2)))))
      digits)))

(defun compactd-text-count (count noun)
  "Return COUNT of NOUN in words."
  (format "%s %s%s" (compactd-text-number count) noun (if (eql count 1) "" "s")))

(defun compactd-text-ago (at)
  "Return how long ago the Unix time AT was."
  (let ((seconds (max 0 (- (float-time) (or at 0)))))
    (cond ((< seconds 90) "now")
          ((< seconds 5400) (format "%d min" (/ seconds 60)))
          ((< seconds 129600) (format "%d h" (/ seconds 3600)))
          (t (format "%d d" (/ seconds 86400))))))

(defun compactd-text-block (block)
  "Return BLOCK of a message as text."
  (pcase (plist-get block :type)
    ("tool_call" (format "→ %s %s" (plist-get block :name)
                         (json-serialize (or (plist-get block :arguments) (make-hash-table))
                                         :null-object nil :false-object :json-false)))
    ("tool_result" (compactd-text-message block))
    (type (or (and (stringp (plist-get block :text)) (plist-get block :text))
              (format "[%s]" type)))))

(defun compactd-text-message (message)
  "Return MESSAGE as text: its blocks one after the other."
  (let ((content (plist-get message :content)))
    (cond ((stringp content) content)
          ((vectorp content) (mapconcat #'compactd-text-block content "\n"))
          (t ""))))

(defun compactd-text-answer (message)
  "Return the text that the model wrote in MESSAGE, and nothing else of it."
  (let ((content (plist-get message :content)))
    (cond ((stringp content) content)
          ((vectorp content)
           (mapconcat (lambda (block) (plist-get block :text))
                      (seq-filter (lambda (block) (equal (plist-get block :type) "text"))
                                  content)
                      "\n"))
          (t ""))))

(declare-function gfm-mode "ext:markdown-mode")
(defvar markdown-fontify-code-blocks-natively)

(defconst compactd-text--most-markdown 100000
  "Characters of the longest text whose Markdown gets faces.")

(defconst compactd-text--markdown
  '(("^#\\{1,6\\} .*$" . bold)
    ("^ *>.*$" . font-lock-doc-face)
    ("^ *\\(?:[-*+]\\|[0-9]\\{1,9\\}[.)]\\) " . font-lock-keyword-face)
    ("\\[[^][\n]+\\](https?://[^)\n ]+)" . link)
    ("\\*\\*[^*\n]+\\*\\*" . bold)
    ("`[^`\n]+`" . font-lock-constant-face))
  "Patterns of Markdown in one line, and their faces.  A later one wins.")

(defun compactd-text--fontify-lines ()
  "Give the Markdown in this buffer its faces, without a mode for it."
  (pcase-dolist (`(,pattern . ,face) compactd-text--markdown)
    (goto-char (point-min))
    (while (re-search-forward pattern nil t)
      (put-text-property (match-beginning 0) (match-end 0) 'face face)))
  ;; Code between fences: nothing in it is Markdown.
  (goto-char (point-min))
  (while (re-search-forward "^ *\\(```+\\|~~~+\\).*\n?" nil t)
    (let ((start (match-beginning 0))
          (end (concat "^ *" (regexp-quote (match-string 1)) " *$")))
      (unless (re-search-forward end nil t)
        (goto-char (point-max)))
      (put-text-property start (point) 'face 'font-lock-constant-face))))

(defun compactd-text-markdown (text)
  "Return TEXT with the faces of its Markdown: those of `gfm-mode' if it is there.
Nothing but faces is added, and no code of a language is run for code blocks."
  (if (> (length text) compactd-text--most-markdown)
      text
    (with-temp-buffer
      (insert text)
      (let ((markdown-fontify-code-blocks-natively nil))
        (condition-case nil
            (if (not (fboundp 'gfm-mode))
                (compactd-text--fontify-lines)
              (delay-mode-hooks (gfm-mode))
              (font-lock-ensure))
          (error nil)))
      (let ((faced (copy-sequence text))
            (from (point-min)))
        (while (< from (point-max))
          (let ((to (or (next-single-property-change from 'face) (point-max)))
                (face (get-text-property from 'face)))
            (when face
              (put-text-property (1- from) (1- to) 'face face faced))
            (setq from to)))
        faced))))

(provide 'compactd-text)
;;; compactd-text.el ends here
