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

(provide 'compactd-text)
;;; compactd-text.el ends here
