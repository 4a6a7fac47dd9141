;;; topos.el --- plans of model code beside the code  -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "29.1"))
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Starts `topos lsp' through Eglot, which serves one server per buffer, or beside other servers through lsp-mode.
;; With Eglot: M-x topos-eglot in a Python buffer.  With lsp-mode: (topos-lsp-mode-setup) in the init file.
;; Nothing is run until its folder is trusted: M-x topos-trust.

;;; Code:

(require 'seq)

(declare-function eglot--managed-mode "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot-execute-command "eglot")
(declare-function eglot--path-to-uri "eglot")
(declare-function eglot-path-to-uri "eglot")
(declare-function eglot "eglot")
(declare-function jsonrpc-request "jsonrpc")
(declare-function make-lsp-client "lsp-mode")
(declare-function lsp-register-client "lsp-mode")
(declare-function lsp-stdio-connection "lsp-mode")
(declare-function lsp-request "lsp-mode")
(declare-function lsp-buffer-language "lsp-mode")
(defvar eglot-server-programs)
(defvar eglot-workspace-configuration)
(defvar lsp-language-id-configuration)

(defgroup topos nil
  "Plans of model code beside the code."
  :group 'tools)

(defcustom topos-command '("topos" "lsp")
  "Command that starts the server."
  :type '(repeat string)
  :risky t)

(defcustom topos-settings nil
  "Settings of the server, as a property list such as (:debounceMs 300)."
  :type 'plist)

(defcustom topos-initialization-options nil
  "Initialization options, as a property list.
\(:untrustedWorkspace :json-false) runs model code of every folder without
asking; (:interpreter \"/path/to/python\") names the Python that runs it."
  :type 'plist
  :risky t)

;;;###autoload
(defun topos-eglot ()
  "Start topos in this buffer through Eglot, in place of its other server."
  (interactive)
  (require 'eglot)
  (setq-local eglot-workspace-configuration (list :topos (or topos-settings (make-hash-table))))
  (let ((eglot-server-programs
         `(((python-mode python-ts-mode)
            . (,@topos-command :initializationOptions ,(or topos-initialization-options (make-hash-table)))))))
    (call-interactively #'eglot)))

;;;###autoload
(defun topos-lsp-mode-setup ()
  "Register topos with lsp-mode as an add-on beside the other Python servers."
  (require 'lsp-mode)
  (lsp-register-client
   (make-lsp-client
    :new-connection (lsp-stdio-connection (lambda () topos-command))
    :activation-fn (lambda (_file mode) (memq mode '(python-mode python-ts-mode)))
    :add-on? t
    :priority -2
    :initialization-options (lambda () (append topos-initialization-options (list :settings topos-settings)))
    :server-id 'topos)))

(defun topos--uri ()
  "Give this buffer's URI as the server knows it."
  (if (fboundp 'eglot-path-to-uri) (eglot-path-to-uri buffer-file-name) (eglot--path-to-uri buffer-file-name)))

(defun topos--run (command &rest arguments)
  "Send COMMAND with this buffer's URI and ARGUMENTS to the server."
  (cond
   ((and (fboundp 'eglot-current-server) (eglot-current-server))
    (jsonrpc-request (eglot-current-server) :workspace/executeCommand
                     (list :command command :arguments (vconcat (list (topos--uri)) arguments))))
   ((bound-and-true-p lsp-mode)
    (lsp-request "workspace/executeCommand"
                 (list :command command :arguments (vconcat (list (concat "file://" buffer-file-name)) arguments))))
   (t (user-error "No language server in this buffer"))))

(defun topos-trust ()
  "Trust this buffer's project, so that its entries are run."
  (interactive)
  (topos--run "topos.trust"))

(defun topos-distrust ()
  "Trust this buffer's project no more."
  (interactive)
  (topos--run "topos.distrust"))

(defun topos-open-plan ()
  "Open the plan viewer on this file."
  (interactive)
  (browse-url (plist-get (topos--run "topos.openPlan") :url)))

(defun topos-trace ()
  "Trace this buffer again."
  (interactive)
  (topos--run "topos.retrace"))

(provide 'topos)
;;; topos.el ends here
