#!/bin/sh
# Codex 0.169.0 (npm: @openai/codex, 400 MB), for the tests of `compactd hook codex` and `compactd mcp` in it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../npm-packages.sh" codex "$here" "Codex 0.169.0 (npm: @openai/codex, 400 MB)"
