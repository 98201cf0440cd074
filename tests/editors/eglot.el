;;; eglot.el --- GraphMend in Emacs' eglot: findings, columns, mend, check on save  -*- lexical-binding: t -*-
;; Run by run.sh. GRAPHMEND_PYTHON is the interpreter that has graphmend.

(require 'cl-lib)
(require 'eglot)
(require 'flymake)

(defvar python (getenv "GRAPHMEND_PYTHON"))

(defun wait-for (what ask)
  "Wait until ASK is true; Emacs in batch is never idle, so what waits for that is done here."
  (let ((end (+ (float-time) 30)))
    (while (and (not (funcall ask)) (< (float-time) end))
      (accept-process-output nil 0.05))
    (unless (funcall ask) (error "Not within 30 s: %s" what))))

(defun let-a-while-pass ()
  (let ((end (+ (float-time) 4))) (while (< (float-time) end) (accept-process-output nil 0.05))))

;; what fails leaves the conversation in the output
(defvar passed nil)
(defun show-conversation ()
  (dolist (buffer (unless passed (buffer-list)))
    (when (string-match-p "EGLOT\\|eglot" (buffer-name buffer))
      (message "== %s\n%s" (buffer-name buffer) (with-current-buffer buffer (buffer-string))))))
(add-hook 'kill-emacs-hook #'show-conversation)

(defun findings () (flymake-start) (flymake-diagnostics))

(setq eglot-sync-connect 30
      eglot-confirm-server-initiated-edits nil
      make-backup-files nil
      auto-save-default nil
      flymake-no-changes-timeout 0.1)

;; as in docs/editors.md
(defvar trusted-folders nil)
(defun contact (&rest _)
  (let ((trusted (seq-some (lambda (folder) (file-in-directory-p default-directory folder)) trusted-folders)))
    `(,python "-m" "graphmend" "server" :initializationOptions (:trusted ,(if trusted t :json-false)))))
(add-to-list 'eglot-server-programs '(python-mode . contact))
(setq-default eglot-workspace-configuration `(:graphmend (:interpreter ,python :verify (:mode "onSave"))))

(let* ((folder (make-temp-file "graphmend" t))
       (file (expand-file-name "net.py" folder))
       (coding-system-for-write 'utf-8)
       (ran (expand-file-name "net.py.ran" folder))
       (text "import pathlib\nimport torch\n\npathlib.Path(__file__ + '.ran').touch()\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n    name = 'é€😀'; print(name)\n    return x * 2\n"))
  (with-temp-file file (insert text))
  (setq project-find-functions (list (lambda (_) (cons 'transient folder))))
  (find-file file)
  (apply #'eglot (eglot--guess-contact))
  (flymake-mode 1)
  (wait-for "a finding" (lambda () (= 1 (length (findings)))))
  (let ((found (car (flymake-diagnostics))))
    (cl-assert (string-match-p "GM201\\|print() writes output" (flymake-diagnostic-text found)) t)
    (cl-assert (string= "print(name)" (buffer-substring (flymake-diagnostic-beg found) (flymake-diagnostic-end found))) t)
    (goto-char (flymake-diagnostic-beg found)))
  (let* ((actions (eglot-code-actions (point) nil "quickfix"))
         (mends (cl-remove-if-not (lambda (a) (string-prefix-p "Mend graph break" (plist-get a :title))) actions)))
    (message "offered: %s" (mapcar (lambda (a) (plist-get a :title)) actions))
    (cl-assert mends t)
    (let ((edit (plist-get (car mends) :edit)))
      ;; eglot 1.9 resolves no actions: the server sends the edit at once
      (cl-assert edit t)
      (eglot--apply-workspace-edit edit)))
  (cl-assert (string-match-p "name = 'é€😀'; emit(print, name)" (buffer-string)) t (buffer-string))
  (eglot--signal-textDocument/didChange)
  (wait-for "no finding" (lambda () (null (findings))))
  ;; saving runs nothing in a folder that nobody trusts, and a check in one that somebody does
  (save-buffer)
  (let-a-while-pass)
  (cl-assert (not (file-exists-p ran)) t)
  (eglot-shutdown (eglot-current-server))
  (setq trusted-folders (list folder))
  (apply #'eglot (eglot--guess-contact))
  (let-a-while-pass) ; the server asks for the settings
  (goto-char (point-max))
  (insert "\n")
  (eglot--signal-textDocument/didChange)
  (save-buffer)
  (wait-for "the check" (lambda () (file-exists-p ran)))
  (eglot-shutdown (eglot-current-server))
  (delete-directory folder t)
  (setq passed t)
  (message "PASS: Emacs %s" emacs-version))
