;;; compactd-test.el --- The parts by themselves -*- lexical-binding: t; -*-

;;; Code:

(require 'ert)
(require 'compactd)
(require 'compactd-commands)
(require 'compactd-context)
(require 'compactd-chat)
(require 'compactd-work)

(ert-deftest compactd-test-what-would-not-show-itself-is-written-out ()
  (should (equal (compactd-text-clean "a\e[31m\bb") "a<1b>[31m<08>b"))
  (should (equal (compactd-text-clean "\u202eexe.txt\u2066\u200f") "<202e>exe.txt<2066><200f>"))
  (should (equal (compactd-text-clean "\u009b\u00a0é") "<9b>\u00a0é"))
  (should (equal (compactd-text-clean "one\r\ntwo\tthree\n") "one\ntwo\tthree\n"))
  (should (equal (compactd-text-clean nil) "")))

(ert-deftest compactd-test-a-line-is-the-first-that-is-not-blank ()
  (should (equal (compactd-text-line "\n \n  two\t words \nthree" 20) "two words"))
  (should (equal (compactd-text-line "漢字漢字漢字" 7) "漢字漢…"))
  (should (equal (compactd-text-line "" 5) "")))

(ert-deftest compactd-test-numbers-are-grouped ()
  (should (equal (mapcar #'compactd-text-number '(0 999 1000 1234567 nil))
                 '("0" "999" "1,000" "1,234,567" "?")))
  (should (equal (compactd-text-count 1 "message") "1 message")))

(ert-deftest compactd-test-blocks-of-a-message-are-its-text ()
  (should (equal (compactd-text-message
                  '(:content [(:type "text" :text "a")
                              (:type "tool_call" :name "f" :arguments (:x 1))
                              (:type "image")]))
                 "a\n→ f {\"x\":1}\n[image]"))
  (should (equal (compactd-text-answer '(:content [(:type "text" :text "a") (:type "image")])) "a"))
  (should (equal (compactd-text-message nil) "")))

(defun compactd-test--faces (text)
  "Return each stretch of TEXT that has a face, with its face."
  (let ((from 0) (found nil))
    (while (< from (length text))
      (let ((to (or (next-single-property-change from 'face text) (length text)))
            (face (get-text-property from 'face text)))
        (when face
          (push (list (substring-no-properties text from to) face) found))
        (setq from to)))
    (nreverse found)))

(ert-deftest compactd-test-markdown-has-faces-and-the-same-words ()
  (let* ((said "# T\n- a **b** `c`\n```py\nx = **1**\n```\n> q\n[l](https://x.org) **open\n")
         (faced (compactd-text-markdown said)))
    (should (equal (substring-no-properties faced) said))
    (should (equal (compactd-test--faces faced)
                   '(("# T" bold) ("- " font-lock-keyword-face) ("**b**" bold)
                     ("`c`" font-lock-constant-face)
                     ("```py\nx = **1**\n```" font-lock-constant-face)
                     ("> q" font-lock-doc-face) ("[l](https://x.org)" link))))
    (should-not (compactd-test--faces (compactd-text-markdown (make-string 200000 ?`))))
    ;; Linear: these took minutes if a bracket could begin a link inside of another one.
    (dolist (mark '("[" "*" "**" "`" "> " "[a](" "~~~\n"))
      (compactd-text-markdown (apply #'concat (make-list (/ 99000 (length mark)) mark))))))

(ert-deftest compactd-test-an-answer-that-streamed-in-gets-faces-at-its-end ()
  (with-temp-buffer
    (compactd-chat-mode)
    (compactd-chat--begin)
    (compactd-chat--take '(:type "message_delta" :delta "It is **do"))
    (compactd-chat--take '(:type "message_delta" :delta "ne**."))
    (should-not (memq 'bold (flatten-tree (compactd-test--faces (buffer-string)))))
    (compactd-chat--take '(:type "message_end" :message (:role "assistant" :content "It is **done**.")))
    (should (equal (car (compactd-test--faces (buffer-string))) '("**done**" bold)))
    (should (string-prefix-p "It is **done**.\n\n────" (buffer-substring-no-properties 1 (point-max))))))

(ert-deftest compactd-test-versions-are-compared ()
  (cl-flet ((judged (version)
              (car (compactd-daemon-judge
                    `(:capabilities (:experimental (:compactd (:protocol_version ,version))))))))
    (should (equal (mapcar #'judged '("1.0" "1.7" "0.9" "2.0" nil "x"))
                   '(nil nil problem problem problem problem)))))

(ert-deftest compactd-test-a-path-is-in-the-workspace-or-it-is-not ()
  (let* ((root (make-temp-file "w 100% ü" t))
         (inside (lambda (path) (and (cdr (compactd-tools-resolve path root)) t))))
    (make-directory (expand-file-name "inner" root))
    (make-symbolic-link "/" (expand-file-name "away" root))
    (should (equal (mapcar inside (list "a.py" "inner/../a" "./x/y/z" root)) '(t t t t)))
    (should (equal (mapcar inside (list "../a" "/etc/passwd" "away/etc" "inner/../../a"
                                        (concat root "x")))
                   '(nil nil nil nil nil)))))

(ert-deftest compactd-test-an-edit-names-what-it-replaces-exactly-once ()
  (let ((path (make-temp-file "edit" nil nil "one %d two\ntwo\n")))
    (should (equal (compactd-tools-plan-edit path "one %d" "1")
                   '("one %d two\ntwo\n" . "1 two\ntwo\n")))
    (should (string-prefix-p "old_text is in the file more than once"
                             (compactd-tools-plan-edit path "two" "x")))
    (should (equal (compactd-tools-plan-edit path "three" "x") "old_text is not in the file"))
    (should (string-prefix-p "the file is there" (compactd-tools-plan-edit path "" "x")))
    (should (equal (compactd-tools-plan-edit (concat path "-new") "" "x") '("" . "x")))
    (should (equal (compactd-tools-plan-edit (concat path "-new") "y" "x")
                   "there is no such file"))))

(defun compactd-test--answer (name arguments)
  "What the tool NAME answers to ARGUMENTS here."
  (let* ((answer nil)
         (compactd-tools-directory (make-temp-file "tools" t))
         (deadline (+ (float-time) 100)))
    (with-temp-file (expand-file-name "a.txt" compactd-tools-directory)
      (insert "one\ntwo\nthree\n"))
    (compactd-tools-execute (list :session_id "s" :call_id "c" :name name :arguments arguments)
                            (lambda (said) (setq answer said)))
    (while (and (null answer) (< (float-time) deadline))
      (accept-process-output nil 0.02))
    answer))

(ert-deftest compactd-test-tools-do-what-the-policies-allow ()
  (let ((compactd-tool-policies '((read_file . allow) (edit_file . allow) (run_command . allow))))
    (should (equal (compactd-test--answer "read_file" '(:path "a.txt" :first_line 2 :last_line 2))
                   '(:content "two\n")))
    (should (equal (compactd-test--answer "edit_file" '(:path "a.txt" :old_text "two" :new_text "2"))
                   '(:content "done")))
    (should (equal (compactd-test--answer "run_command" '(:command "cat a.txt | wc -l"))
                   '(:content "3\n")))
    (should (equal (compactd-test--answer "run_command" '(:command "echo no; exit 3"))
                   '(:content "[exit code 3]\nno\n" :is_error t)))
    (should (plist-get (compactd-test--answer "read_file" '(:path "b.txt")) :is_error))
    (should (plist-get (compactd-test--answer "read_file" '(:nothing 1)) :is_error))
    (should (plist-get (compactd-test--answer "fly" nil) :is_error)))
  (let ((compactd-tool-policies '((read_file . deny) (edit_file . deny) (run_command . deny))))
    (dolist (call '(("read_file" (:path "a.txt"))
                    ("edit_file" (:path "a.txt" :old_text "two" :new_text "2"))
                    ("run_command" (:command "echo"))))
      (should (equal (plist-get (apply #'compactd-test--answer call) :content)
                     "the person's settings refuse this tool")))))

(ert-deftest compactd-test-the-gauge-says-what-needs-attention ()
  (cl-flet ((said (used decision confidence &optional held compacting)
              (let ((session (compactd-session-create
                              :id "s" :title "%s" :read-only held :held held
                              :compacting compacting
                              :usage (list :current_context_tokens used :decision decision
                                           :percent used :context_window 100
                                           :context_window_confidence confidence))))
                (list (compactd-gauge-short session) (compactd-gauge-face session)))))
    (should (equal (said 41 "fits" "fact") '("◔ 41 %" nil)))
    (should (equal (said 41.2 "fits" "guess") '("◔ ~41 %?" compactd-due)))
    (should (equal (said 80 "due" "fact") '("◔ 80 % due" compactd-due)))
    (should (equal (said 120 "over" "fact" t) '("◔ 120 % over open in another program" compactd-over)))
    (should (equal (said 41 "fits" "fact" nil 0.5) '("◔ compacting 50 %" nil)))))

(ert-deftest compactd-test-the-details-say-what-the-session-cost-where-that-is-known ()
  (cl-flet ((last-line (cost)
              (car (last (compactd-gauge-long
                          (compactd-session-create
                           :id "s" :usage (list :current_context_tokens 41 :context_window 100
                                                :threshold_tokens 80 :cost cost)))))))
    (should (equal (last-line '(:billed 1.234)) "cost           $1.23   so far, at list prices"))
    (should (string-prefix-p "compacts" (last-line '(:billed nil))))
    (should (string-prefix-p "compacts" (last-line nil)))))

(ert-deftest compactd-test-the-mode-line-evaluates-nothing-of-a-title ()
  (let* ((compactd-sessions (make-hash-table :test #'equal))
         (compactd-current-id "s")
         (session (compactd-session-create
                   :id "s" :title "%b %e \e[31m" :usage '(:percent 5 :context_window_confidence "fact"))))
    (puthash "s" session compactd-sessions)
    (should (equal (substring-no-properties (nth 1 (compactd-mode-line))) "◔ 5 %%"))
    (should (string-match-p "%b %e <1b>\\[31m" (get-text-property 0 'help-echo (nth 1 (compactd-mode-line)))))))

(ert-deftest compactd-test-the-mode-is-put-on-and-taken-off ()
  (let ((global-mode-string '("")))
    (compactd-mode 1)
    (compactd-mode 1)
    (should (= 1 (seq-count (lambda (each) (equal each compactd-mode-line-segment))
                            global-mode-string)))
    (compactd-mode -1)
    (should-not (member compactd-mode-line-segment global-mode-string))))

(ert-deftest compactd-test-the-prompt-survives-what-streams-in ()
  (with-temp-buffer
    (compactd-chat-mode)
    (compactd-chat--begin)
    (compactd-chat--add-entries '((:kind "message" :message (:role "user" :content "hi"))))
    (goto-char (point-max))
    (insert "half a prom")
    (dolist (event '((:type "message_delta" :delta "one ") (:type "message_delta" :delta "two")
                     (:type "message_end" :message (:content [(:type "text" :text "one two three")]))))
      (compactd-chat--take event))
    (should (equal (buffer-substring-no-properties (point-min) (point-max))
                   (concat "› hi\n\none two three\n\n" compactd-chat--line "half a prom")))
    (should (equal (buffer-substring compactd-chat--prompt (point-max)) "half a prom"))))

(defun compactd-test--work (width &rest work)
  "What is shown of WORK in WIDTH columns."
  (with-temp-buffer
    (compactd-work--insert work width)
    (buffer-string)))

(defun compactd-test--tasks (count text status)
  "COUNT tasks of TEXT and STATUS."
  (cl-loop for n from 1 to count
           collect (list :text (format "%s %d" text n) :status status :entry_id "e1")))

(ert-deftest compactd-test-the-work-has-a-line-for-each-thing-that-is-known ()
  (should
   (equal
    (substring-no-properties
     (compactd-test--work
      100
      :goal "Mend it." :request "Now test it." :constraints []
      :plan (vconcat (compactd-test--tasks 1 "find" "done") (compactd-test--tasks 1 "mend" "in_progress"))
      :changes [(:path "a.py" :kind "edited" :edits 3 :last_entry_id "e2" :committed t :checked t)
                (:path "b.py" :kind "created" :edits 1 :last_entry_id "e3"
                 :committed :json-false :checked :json-false)]
      :checks [(:kind "test" :command "pytest" :outcome "passed" :entry_id "e4" :stale t)
               (:kind "test" :command "pytest" :outcome "passed" :entry_id "e4" :stale t)]
      :open_errors [(:text "no space" :command "cp a b" :entry_id "e5")]
      :decisions [(:text "a queue" :was "recursion" :entry_id "e6")]
      :failed_attempts []
      :now '(:text "I look." :entry_id "e7")))
    (concat
     "goal         Mend it.\n"
     "request      Now test it.\n"
     "plan         1 of 2 tasks done\n"
     "             done         find 1 [e1]\n"
     "             in progress  mend 1 [e1]\n"
     "files        a.py   3 edits, committed, checked [e2]\n"
     "             b.py   created, uncommitted, unchecked [e3]\n"
     "checks       tests passed: pytest   files changed since [e4]\n"
     "open errors  no space (cp a b) [e5]\n"
     "decisions    a queue (before: recursion) [e6]\n"
     "now          I look. [e7]\n")))
  (should (equal (compactd-test--work 80 :goal "Do it." :request "Do it.") "goal         Do it.\n"))
  (should (string-prefix-p "Nothing yet" (compactd-test--work 80))))

(ert-deftest compactd-test-of-much-work-the-newest-is-shown-and-all-is-counted ()
  (should (equal (compactd-test--work
                  80 :failed_attempts (cl-loop for n from 1 to 5
                                               vconcat (list (list :text (format "try %d" n)
                                                                   :entry_id (format "e%d" n)))))
                 (concat "failed       5 failed attempts, the last 2:\n"
                         "             try 4 [e4]\n"
                         "             try 5 [e5]\n")))
  (let ((lines (split-string
                (compactd-test--work
                 80 :plan (vconcat (compactd-test--tasks 9 "done" "done")
                                   (compactd-test--tasks 1 "left" "dropped")
                                   (compactd-test--tasks 2 "later" "open")))
                "\n" t)))
    (should (equal (list (length lines) (nth 0 lines) (nth 1 lines) (nth 8 lines))
                   '(9 "plan         9 of 12 tasks done, 8 of them shown"
                       "             done         done 5 [e1]"
                       "             open         later 2 [e1]")))
  (should (equal (length (split-string
                          (compactd-test--work 80 :plan (vconcat (compactd-test--tasks 10 "later" "open")))
                          "\n" t))
                 9))))

(ert-deftest compactd-test-a-line-about-the-work-is-text-and-names-its-message ()
  (let* ((shown (compactd-test--work 60 :goal "one\n\n two\e[31m"
                                     :now (list :text (apply #'concat (make-list 60 "漢字 "))
                                                :entry_id "e7")
                                     :open_errors [(:text "x\ny" :command "z" :entry_id "e5")]))
         (lines (split-string shown "\n" t)))
    (should (equal (nth 0 lines) "goal         one two<1b>[31m"))
    (should (equal (nth 1 lines) "open errors  x y (z) [e5]"))
    (should (eq (get-text-property 0 'face (nth 1 lines)) 'compactd-over))
    (should (string-suffix-p "… [e7]" (nth 2 lines)))
    (should (<= (string-width (nth 2 lines)) 60))
    (should (equal (mapcar (lambda (line) (get-text-property 0 'compactd-entry-id line)) lines)
                   '(nil "e5" "e7")))))

(ert-deftest compactd-test-every-command-and-setting-is-in-the-manual ()
  (let ((manual (with-temp-buffer
                  (insert-file-contents (getenv "COMPACTD_MANUAL"))
                  (buffer-string))))
    (mapatoms
     (lambda (symbol)
       (let ((name (symbol-name symbol)))
         (when (and (string-prefix-p "compactd-" name)
                    (not (string-match-p "--\\|-mode$\\|-test\\|-hook$\\|^compactd-\\(chat\\|context\\|preview\\|tools\\|work\\)-" name))
                    (or (commandp symbol) (custom-variable-p symbol)))
           (should (or (member name '("compactd-menu"))
                       (string-match-p (regexp-quote (concat "`" name "`")) manual)))))))))

(provide 'compactd-test)
;;; compactd-test.el ends here
