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

(defconst compactd-text--most-markdown 100000
  "Characters of the longest text whose Markdown gets faces.")

(defconst compactd-text--markdown
  '(("^#\\{1,6\\} .*$" bold markdown-header-face)
    ("^ *>.*$" font-lock-doc-face markdown-blockquote-face)
    ("^ *\\(?:[-*+]\\|[0-9]\\{1,9\\}[.)]\\) " font-lock-keyword-face markdown-list-face)
    ("\\[[^][\n]+\\](https?://[^)\n ]+)" link markdown-link-face)
    ("\\*\\*[^*\n]+\\*\\*" bold markdown-bold-face)
    ("`[^`\n]+`" font-lock-constant-face markdown-inline-code-face))
  "Patterns of Markdown in one line, each with its face and that of markdown-mode.
A later one wins.  The patterns take linear time, which those of
markdown-mode do not: 20,000 brackets took 43 s (version 2.5, 2026-11-27).")

(defun compactd-text--face (ours theirs)
  "Return the face THEIRS if markdown-mode is loaded, otherwise OURS."
  (if (facep theirs) theirs ours))

(defun compactd-text--fontify ()
  "Give the Markdown in this buffer its faces."
  (pcase-dolist (`(,pattern ,ours ,theirs) compactd-text--markdown)
    (let ((face (compactd-text--face ours theirs)))
      (goto-char (point-min))
      (while (re-search-forward pattern nil t)
        (put-text-property (match-beginning 0) (match-end 0) 'face face))))
  ;; Code between fences: nothing in it is Markdown.
  (let ((face (compactd-text--face 'font-lock-constant-face 'markdown-code-face)))
    (goto-char (point-min))
    (while (re-search-forward "^ *\\(`\\{3,40\\}\\|~\\{3,40\\}\\).*\n?" nil t)
      (let ((start (match-beginning 0))
            (end (concat "^ *" (regexp-quote (match-string 1)) " *$")))
        (unless (re-search-forward end nil t)
          (goto-char (point-max)))
        (put-text-property start (point) 'face face)))))

(defun compactd-text-markdown (text)
  "Return TEXT with faces for its Markdown.  Its words stay as they are."
  (if (> (length text) compactd-text--most-markdown)
      text
    (with-temp-buffer
      (insert text)
      (compactd-text--fontify)
      (buffer-string))))

(provide 'compactd-text)
;;; compactd-text.el ends here
