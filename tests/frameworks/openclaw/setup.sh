#!/bin/sh
# OpenClaw 2026.9.6 (npm), for the tests of integrations/openclaw. It needs Node 24.16 or newer.
#   BIN=.venv/bin sh tests/frameworks/openclaw/setup.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../../editors/npm-packages.sh" openclaw "$here" "OpenClaw (npm: 650 MB)"
