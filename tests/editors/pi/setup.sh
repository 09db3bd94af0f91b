#!/bin/sh
# pi 0.87.1 (npm: @earendil-works/pi-coding-agent, 160 MB), for the tests of integrations/pi.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../npm-packages.sh" pi "$here" "pi 0.87.1 (npm: @earendil-works/pi-coding-agent, 160 MB)"
