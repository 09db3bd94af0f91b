#!/bin/sh
# OpenAI Agents SDK 0.20, AI SDK 7 and 6, Mastra 1.71 (npm), for the tests of integrations/node, and the compiler that builds it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../../editors/npm-packages.sh" node-frameworks "$here" "OpenAI Agents SDK, AI SDK and Mastra for Node (npm: 280 MB)"
