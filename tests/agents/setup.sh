#!/bin/sh
# The coding agents that the tests marked `agent` run, outside the tree. One that npm does not give is left out: its
# tests are skipped. The agents that are editors' tests too have their folders in tests/editors.
set -eu
here=$(dirname "$0")
for script in "$here"/*/setup.sh; do
    sh "$script"
done
for agent in codex gemini opencode pi; do
    sh "$here/../editors/$agent/setup.sh" || echo "$agent: left out" >&2
done
