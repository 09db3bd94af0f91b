#!/bin/sh
# OpenAI Agents SDK 0.20 and AI SDK 7 (npm), for the tests of integrations/node, and the compiler that builds it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../../editors/npm-packages.sh" node-frameworks "$here" "OpenAI Agents SDK and AI SDK for Node (npm: 120 MB)"
