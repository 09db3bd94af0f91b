#!/bin/sh
# Installs what `make test-system` needs, where it is missing and we may.
set -eu
missing=""
for package in jq git zsh fish groff tmux; do
    command -v "$package" >/dev/null 2>&1 || missing="$missing $package"
done
# Debian puts the server's programs into no folder of the PATH.
if ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    missing="$missing postgresql"
fi
[ -n "$missing" ] || exit 0
echo "installing$missing ..."
if command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then as_root=""; else as_root="sudo"; fi
    $as_root apt-get update -qq
    $as_root apt-get install -y -qq $missing >/dev/null
elif command -v brew >/dev/null 2>&1; then
    brew install $missing
else
    echo "missing:$missing; install with this system's package manager" >&2
    exit 1
fi
