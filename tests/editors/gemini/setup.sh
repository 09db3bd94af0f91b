#!/bin/sh
# Gemini CLI 0.61.0 (npm: @google/gemini-cli, 100 MB), for the tests of `compactd hook gemini-cli`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../npm-packages.sh" gemini "$here" "Gemini CLI 0.61.0 (npm: @google/gemini-cli, 100 MB)"
