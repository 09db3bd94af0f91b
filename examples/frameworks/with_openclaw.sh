#!/bin/sh
# Builds compactd's plugin for OpenClaw, installs it, and shows that it has the slot.
#
#   sh examples/frameworks/with_openclaw.sh    (in a clone; `openclaw` and `npm` are on the PATH)
#
# It answers yes to OpenClaw's question whether the plugin is trusted. Set OPENCLAW_STATE_DIR to try it in a folder of its
# own. `openclaw plugins uninstall compactd` undoes it.
set -eu
cd "$(dirname "$0")/../../integrations/openclaw"
[ -d node_modules ] || npm install --no-audit --no-fund
npm pack
openclaw plugins install "$(ls "$PWD"/compactd-openclaw-*.tgz)" --force --accept-capabilities
openclaw config set agents.defaults.compaction.midTurnPrecheck.enabled true
printf 'The slot contextEngine has: '
openclaw config get plugins.slots.contextEngine
openclaw plugins inspect compactd --runtime
