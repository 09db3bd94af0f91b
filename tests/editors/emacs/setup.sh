#!/bin/sh
# Emacs for the tests, from Debian: the editor, its package checker, texinfo, tmux; where they are missing and we
# may install them.
set -eu
. "$(dirname "$0")/../fetching.sh"
missing=""
command -v emacs >/dev/null 2>&1 || missing="emacs-nox"
command -v makeinfo >/dev/null 2>&1 || missing="$missing texinfo"
command -v tmux >/dev/null 2>&1 || missing="$missing tmux"
if command -v apt-get >/dev/null 2>&1; then
    [ -n "$(find /usr/share/emacs/site-lisp/elpa-src -maxdepth 1 -name 'package-lint-*' 2>/dev/null)" ] || missing="$missing elpa-package-lint"
    [ -n "$missing" ] || exit 0
    echo "installing $missing (Debian) ..."
    debian $missing
elif [ -n "$missing" ]; then
    if command -v brew >/dev/null 2>&1; then
        brew install emacs texinfo tmux
    else
        echo "missing: $missing; install with this system's package manager" >&2
        exit 1
    fi
fi
