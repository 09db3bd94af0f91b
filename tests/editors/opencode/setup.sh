#!/bin/sh
# OpenCode 1.18.33 and its plugin package (npm: opencode-ai, @opencode-ai/plugin; 420 MB), for the tests of
# integrations/opencode.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
what="OpenCode 1.18.33 and its plugin package (npm: opencode-ai, @opencode-ai/plugin; 420 MB)"
sh "$here/../npm-packages.sh" opencode "$here" "$what" install
