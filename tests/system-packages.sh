#!/bin/sh
# Installs what `make test-system` needs, where it is missing and we may.
set -eu
command -v jq >/dev/null 2>&1 && exit 0
echo "installing jq ..."
if command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then as_root=""; else as_root="sudo"; fi
    $as_root apt-get update -qq
    $as_root apt-get install -y -qq jq >/dev/null
elif command -v brew >/dev/null 2>&1; then
    brew install jq
else
    echo "jq is missing: install it with this system's package manager" >&2
    exit 1
fi
