#!/bin/sh
# Chromium, for the tests that look at a page: the system's own package, installed where it is missing and we may.
# COMPACTD_CHROMIUM names another one.
set -eu
. "$(dirname "$0")/fetching.sh"
if [ -n "${COMPACTD_CHROMIUM:-}" ]; then exit 0; fi
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if command -v apt-get >/dev/null 2>&1; then
    echo "installing chromium (Debian's package, about 350 MB) ..."
    debian chromium fonts-dejavu-core
else
    echo "missing: chromium; install it, or name one in COMPACTD_CHROMIUM" >&2
    exit 1
fi
