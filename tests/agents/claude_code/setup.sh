#!/bin/sh
# Claude Code in three versions (npm: @anthropic-ai/claude-code, 1 GB in all), for the tests beside this file. A
# version that npm does not give is left out, and the tests of it are skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for folder in "$here"/2.*; do
    version=$(basename "$folder")
    what="Claude Code $version (npm: @anthropic-ai/claude-code)"
    sh "$here/../../editors/npm-packages.sh" "claude-code-$version" "$folder" "$what" || echo "$what: left out" >&2
done
