#!/bin/sh
# Hermes Agent (PyPI), with pytest and what compactd needs, in an environment outside the tree:
# ${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}/hermes-HASH. Hermes pins its packages, so it shares none with others.
#   BIN=.venv/bin sh tests/frameworks/hermes/setup.sh
# If the index does not have it, it is left out, and its tests are skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${BIN:-}" ]; then python="$(cd "$BIN" && pwd)/python"; else python=python3; fi
place=$("$python" "$here/environment.py")
if [ -e "$place/.installed" ]; then exit 0; fi
what="Hermes Agent (PyPI: hermes-agent; 240 MB)"
echo "installing $what in $place (once) ..."
fetch() {
    rm -rf "$place"
    mkdir -p "$(dirname "$place")"
    "$python" -m venv "$place"
    "$place/bin/python" -m pip install -qq --disable-pip-version-check --no-compile --require-hashes \
        -r "$here/requirements.lock"
}
. "$here/../../editors/fetching.sh"
if again "$what" fetch; then touch "$place/.installed"; else echo "$what: left out" >&2; fi
