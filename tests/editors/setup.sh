#!/bin/sh
# What the tests of the extensions need: each folder beside this file says what, and fetches it where it may.
set -eu
here=$(dirname "$0")
for script in "$here"/*/setup.sh; do
    [ -e "$script" ] && sh "$script"
done
