;;; compactd-daemon.el --- The daemon of this Emacs -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Found, started when it is first needed, started again where it died.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'seq)
(require 'subr-x)
(require 'compactd-finding)
(require 'compactd-text)

(defcustom compactd-compaction nil
  "Settings of every session, a property list as in protocol.md.
For example (:strategy \"extract\" :keep_recent_tokens 20000)."
  :group 'compactd
  :type '(plist :key-type symbol :value-type sexp))

(defcustom compactd-start-timeout 10
  "Seconds that the daemon may take to say its first word."
  :group 'compactd
  :type 'number)

(defcustom compactd-restart-delay 0.25
  "Seconds before a daemon that died is started again.
Doubled with each further death."
  :group 'compactd
  :type 'number)

(defcustom compactd-restarts 5
  "How often in a minute a daemon that dies is started again."
  :group 'compactd
  :type 'natnum)

(defvar compactd-daemon-status 'none
  "One of `none', `starting', `ready', `waiting', `failed'.")

(defvar compactd-daemon-problem nil
  "Why the daemon is not there, or what to mind.")

(defvar compactd-daemon-place nil
  "Where the daemon was found: (FROM PATH COMMAND).")

(defvar compactd-daemon-version nil
  "Version and protocol version of the daemon, as a cons.")

(defvar compactd-daemon-event-function #'ignore
  "Called with the properties of each event.")

(defvar compactd-daemon-tool-function nil
  "Called with the properties of a tool call and a function that takes the answer.")

(defvar compactd-daemon-ready-function #'ignore
  "Called when the daemon is ready: whether it is a further one, how the last died.")

(defvar compactd-daemon-gone-function #'ignore
  "Called when the daemon is no more.")

(defvar compactd-daemon--connection nil)
(defvar compactd-daemon--compaction nil
  "The id of the request for the present compaction, or nil.")
(defvar compactd-daemon--waiting nil)
(defvar compactd-daemon--deaths nil)
(defvar compactd-daemon--has-run nil)
(defvar compactd-daemon--died nil)
;;; The connection

(cl-defstruct (compactd-daemon-later (:constructor compactd-daemon-later-create))
  "The answer to a question that will come later."
  id connection answer)

(defclass compactd-daemon-connection (jsonrpc-process-connection) ()
  "A connection whose questions may be answered later.")

(cl-defmethod jsonrpc-connection-send ((connection compactd-daemon-connection) &rest args)
  "Send ARGS over CONNECTION, but no answer that is not there yet."
  (let ((later (plist-get args :result)))
    (cond
     ((not (compactd-daemon-later-p later))
      (when compactd-trace
        (compactd-log-add "→" (format "%S" args)))
      (when (and (eq (plist-get args :method) 'session/compact)
                 (not (plist-get (plist-get args :params) :dry_run)))
        (setq compactd-daemon--compaction (plist-get args :id)))
      (apply #'cl-call-next-method connection args))
     ((compactd-daemon-later-answer later)
      (jsonrpc-connection-send connection :id (plist-get args :id)
                               :result (compactd-daemon-later-answer later)))
     (t
      (setf (compactd-daemon-later-id later) (plist-get args :id)
            (compactd-daemon-later-connection later) connection)))))

(defun compactd-daemon--answer (later answer)
  "Give LATER its ANSWER, at once or when it is asked for."
  (unless (compactd-daemon-later-answer later)
    (setf (compactd-daemon-later-answer later) answer)
    (let ((connection (compactd-daemon-later-connection later)))
      (when (and connection (jsonrpc-running-p connection))
        (jsonrpc-connection-send connection :id (compactd-daemon-later-id later)
                                 :result answer)))))

(defun compactd-daemon--asked (_connection method params)
  "Answer the question METHOD with PARAMS."
  (when compactd-trace
    (compactd-log-add "←" (format "%s %S" method params)))
  (if (and (eq method 'tool/execute) compactd-daemon-tool-function)
      (let ((later (compactd-daemon-later-create)))
        (run-at-time 0 nil compactd-daemon-tool-function params
                     (lambda (answer) (compactd-daemon--answer later answer)))
        later)
    (make-hash-table)))

(defun compactd-daemon--told (_connection method params)
  "Take in the notification METHOD with PARAMS."
  (when compactd-trace
    (compactd-log-add "←" (format "%s %S" method params)))
  (pcase method
    ('agent/event
     (condition-case problem
         (funcall compactd-daemon-event-function params)
       (error (compactd-log-add "life" (format "an event could not be taken in: %S" problem)))))
    ('window/logMessage (compactd-log-add "daemon" (or (plist-get params :message) "")))))

(defun compactd-daemon--tell (text)
  "Tell the person TEXT, and the log."
  (compactd-log-add "life" text)
  (message "compactd: %s" text))

(defun compactd-daemon--settle (problem)
  "Call everybody who waits, with PROBLEM or nil."
  (let ((waiting (nreverse compactd-daemon--waiting)))
    (setq compactd-daemon--waiting nil)
    (dolist (callback waiting)
      (funcall callback problem))))

(defun compactd-daemon--fail (problem)
  "The daemon is not there, for PROBLEM."
  (setq compactd-daemon-status 'failed
        compactd-daemon-problem problem)
  (compactd-log-add "life" problem)
  (compactd-daemon--settle problem))

(defun compactd-daemon--kill ()
  "End the daemon without a word."
  (let ((connection compactd-daemon--connection))
    (setq compactd-daemon--connection nil)
    (when (and connection (jsonrpc-running-p connection))
      (let ((process (jsonrpc--process connection)))
        (set-process-sentinel process #'ignore)
        (delete-process process)))))

(defun compactd-daemon--refuse (problem)
  "End the daemon, for PROBLEM."
  (compactd-daemon--kill)
  (compactd-daemon--fail problem)
  (when compactd-daemon--has-run
    (funcall compactd-daemon-gone-function)
    (compactd-daemon--tell problem)))

(defun compactd-daemon--restart-later ()
  "Start the daemon again, or leave it alone where it died too often."
  (let ((now (float-time)))
    (setq compactd-daemon--deaths
          (cons now (seq-filter (lambda (at) (< (- now at) 60)) compactd-daemon--deaths)))
    (if (> (length compactd-daemon--deaths) compactd-restarts)
        (let ((problem (format "the daemon died %d times in a minute and is left alone.  \
M-x compactd-log, M-x compactd-restart" (length compactd-daemon--deaths))))
          (compactd-daemon--fail problem)
          (compactd-daemon--tell problem))
      (setq compactd-daemon-status 'waiting)
      (run-at-time (min 8 (* compactd-restart-delay
                             (expt 2 (1- (length compactd-daemon--deaths)))))
                   nil
                   (lambda ()
                     (when (eq compactd-daemon-status 'waiting)
                       (compactd-daemon--start)))))))

(defun compactd-daemon--ended (connection)
  "The daemon of CONNECTION is no more."
  (when (eq connection compactd-daemon--connection)
    (let* ((process (jsonrpc--process connection))
           (how (format "%s %d"
                        (if (eq (process-status process) 'signal) "signal" "code")
                        (process-exit-status process)))
           (was compactd-daemon-status))
      (setq compactd-daemon--connection nil)
      (compactd-log-add "life" (concat "the daemon ended with " how))
      (funcall compactd-daemon-gone-function)
      (pcase was
        ('ready
         (setq compactd-daemon--died how)
         (compactd-daemon--restart-later))
        ('starting
         (compactd-daemon--fail
          (format "the daemon ended with %s before it said anything (%s)"
                  how (cadr compactd-daemon-place))))))))

(defun compactd-daemon--begun (connection result)
  "CONNECTION is there, the daemon answered RESULT."
  (when (eq connection compactd-daemon--connection)
    (pcase (compactd-daemon-judge result)
      (`(problem . ,text) (compactd-daemon--refuse text))
      (judged
       (setq compactd-daemon-problem (cdr judged)
             compactd-daemon-version
             (cons (plist-get (plist-get result :serverInfo) :version)
                   (plist-get (plist-get (plist-get (plist-get result :capabilities)
                                                    :experimental)
                                         :compactd)
                              :protocol_version)))
       (when judged
         (compactd-daemon--tell (cdr judged)))
       (jsonrpc-notify connection 'initialized (make-hash-table))
       (setq compactd-daemon-status 'ready)
       (let ((again compactd-daemon--has-run)
             (how compactd-daemon--died))
         (setq compactd-daemon--has-run t
               compactd-daemon--died nil)
         (funcall compactd-daemon-ready-function again how))
       (compactd-daemon--settle nil)))))

(defun compactd-daemon--is-garbage (process)
  "Return whether PROCESS began with what is no header of the protocol."
  (and (eq compactd-daemon-status 'starting)
       (with-current-buffer (process-buffer process)
         (save-excursion
           (goto-char (point-min))
           (and (not (eobp))
                (null (jsonrpc--expected-bytes (process-get process 'jsonrpc-connection)))
                (let ((case-fold-search t)
                      (start (buffer-substring (point) (min (point-max) (+ (point) 8)))))
                  (not (string-prefix-p start "content-" t))))))))

(defun compactd-daemon--late (connection)
  "CONNECTION said nothing of sense for too long."
  (when (and (eq connection compactd-daemon--connection)
             (eq compactd-daemon-status 'starting))
    (let* ((buffer (process-buffer (jsonrpc--process connection)))
           (wrote (if (buffer-live-p buffer)
                      (with-current-buffer buffer
                        (buffer-substring-no-properties (point-min) (min (point-max) 200)))
                    "")))
      (if (string-empty-p (string-trim wrote))
          (compactd-daemon--refuse
           (format "the daemon did not answer within %s s (%s)"
                   compactd-start-timeout (cadr compactd-daemon-place)))
        (compactd-log-add "life" (concat "no message of the protocol: " wrote))
        (compactd-daemon--refuse
         "the daemon wrote something that is no message of the protocol, and was \
stopped.  M-x compactd-log shows it")))))

(defun compactd-daemon--spawn (command)
  "Start COMMAND; return the connection."
  (let* ((process-environment (append compactd-environment process-environment))
         (coding-system-for-read 'utf-8-emacs-unix)
         (coding-system-for-write 'utf-8-emacs-unix)
         (connection
          (apply #'make-instance 'compactd-daemon-connection
                 :name "compactd"
                 :notification-dispatcher #'compactd-daemon--told
                 :request-dispatcher #'compactd-daemon--asked
                 :on-shutdown #'compactd-daemon--ended
                 :process (lambda ()
                            (make-process
                             :name "compactd" :command command :noquery t
                             :connection-type 'pipe :coding 'utf-8-emacs-unix
                             :stderr (get-buffer-create "*compactd stderr*")))
                 (if (boundp 'jsonrpc-event-hook)
                     '(:events-buffer-config (:size 0 :format short))
                   '(:events-buffer-scrollback-size 0))))
         (process (jsonrpc--process connection))
         (sentinel (process-sentinel process))
         (filter (process-filter process)))
    (set-process-filter process
                        (lambda (process text)
                          (funcall filter process text)
                          (unless (eq compactd-daemon-status 'starting)
                            (set-process-filter process filter))
                          (when (compactd-daemon--is-garbage process)
                            (run-at-time 0 nil #'compactd-daemon--late connection))))
    (set-process-query-on-exit-flag process nil)
    (set-process-sentinel process
                          (lambda (process change)
                            (let ((inhibit-message t)
                                  (message-log-max nil))
                              (funcall sentinel process change))))
    (let ((beside (get-buffer-process (get-buffer " *compactd stderr*"))))
      (when beside
        (set-process-query-on-exit-flag beside nil)
        (set-process-filter beside (lambda (_process text) (compactd-log-add "stderr" text)))))
    connection))

(defun compactd-daemon--start ()
  "Find the daemon and start it."
  (let* ((default-directory (if (file-remote-p default-directory) "~/" default-directory))
         (places (compactd-daemon-places))
         (place (compactd-daemon-choose places)))
    (setq compactd-daemon-status 'starting
          compactd-daemon-problem nil
          compactd-daemon-place place)
    (if (null place)
        (compactd-daemon--fail (compactd-daemon--advice places))
      (compactd-log-add "life" (format "starting %s (from the %s)"
                                       (string-join (caddr place) " ") (car place)))
      (condition-case problem
          (setq compactd-daemon--connection (compactd-daemon--spawn (caddr place)))
        (error
         (compactd-daemon--fail (format "the daemon could not be started: %s"
                                        (error-message-string problem)))))
      (when (eq compactd-daemon-status 'starting)
        (compactd-daemon--initialize compactd-daemon--connection)))))

(defun compactd-daemon--initialize (connection)
  "Say the first word over CONNECTION."
  (condition-case problem
      (jsonrpc-async-request
       connection 'initialize
       (append (list :processId (emacs-pid)
                     :rootUri nil
                     :clientInfo (list :name "Emacs" :version emacs-version)
                     :capabilities (make-hash-table))
               (and compactd-compaction
                    (list :initializationOptions (list :compaction compactd-compaction))))
       :success-fn (lambda (result) (compactd-daemon--begun connection result))
       :error-fn (lambda (failure)
                   (when (and (eq connection compactd-daemon--connection)
                              (jsonrpc-running-p connection))
                     (compactd-daemon--refuse
                      (format "the daemon refused to begin: %s" (plist-get failure :message)))))
       :timeout compactd-start-timeout
       :timeout-fn (lambda () (compactd-daemon--late connection)))
    (error
     (compactd-daemon--refuse (format "the daemon could not be spoken to: %s"
                                      (error-message-string problem))))))

(defun compactd-daemon-ensure (callback)
  "Call CALLBACK when the daemon is ready, with nil, or else with the problem."
  (if (eq compactd-daemon-status 'ready)
      (funcall callback nil)
    (push callback compactd-daemon--waiting)
    (when (memq compactd-daemon-status '(none failed))
      (setq compactd-daemon--deaths nil)
      (compactd-daemon--start))))

(defun compactd-daemon-restart (callback)
  "Restart the daemon; then call CALLBACK with nil or the problem."
  (compactd-daemon--kill)
  (funcall compactd-daemon-gone-function)
  (setq compactd-daemon-status 'none)
  (compactd-daemon-ensure callback))

(defun compactd-daemon-pid ()
  "Return the daemon's process id, or nil."
  (and compactd-daemon--connection
       (jsonrpc-running-p compactd-daemon--connection)
       (process-id (jsonrpc--process compactd-daemon--connection))))

(defun compactd-daemon-cancel-compaction ()
  "Take the request for the present compaction back; return whether there is one."
  (when (and compactd-daemon--compaction compactd-daemon--connection)
    (jsonrpc-notify compactd-daemon--connection '$/cancelRequest
                    (list :id compactd-daemon--compaction))
    (setq compactd-daemon--compaction nil)
    t))

(defconst compactd-daemon-gone -1
  "Code of the error if nothing answered.")

(defun compactd-request (method params success &optional failure)
  "Ask the daemon METHOD with PARAMS; it is started if need be.
SUCCESS is called with the result, FAILURE with a property list of
`:code' and `:message'; without FAILURE the person is told."
  (let ((failure (or failure #'compactd-say-failure)))
    (compactd-daemon-ensure
     (lambda (problem)
       (if (or problem (null compactd-daemon--connection))
           (funcall failure (list :code compactd-daemon-gone
                                  :message (or problem "the daemon is not there")))
         (condition-case oops
             (jsonrpc-async-request
              compactd-daemon--connection (intern method) (or params (make-hash-table))
              :success-fn success :error-fn failure :timeout nil)
           (error
            (funcall failure (list :code compactd-daemon-gone
                                   :message (error-message-string oops))))))))))

(defun compactd-say-failure (failure)
  "Tell the person of FAILURE."
  (message "compactd: %s" (compactd-text-clean (or (plist-get failure :message) "it failed"))))

(provide 'compactd-daemon)
;;; compactd-daemon.el ends here
