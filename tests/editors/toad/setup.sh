#!/bin/sh
# What the test of `compactd acp` in toad needs, where it is missing: toad 0.6.20 (PyPI: batrachian-toad, 90 MB), in
# a virtual environment of its own under ${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}. It wants Python 3.14;
# where there is none, 3.13 runs it with on_python_3_13.py beside this file.
#   sh tests/editors/toad/setup.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=0.6.20
place="${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}/toad-$version"
if [ -e "$place/.installed" ]; then exit 0; fi
python=
for name in python3.14 python3.13; do
    for one in "$name" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"${name#python}".*/bin/"$name"; do
        if [ -z "$python" ] && "$one" -c '' 2>/dev/null; then python=$one; fi
    done
done
if [ -z "$python" ]; then
    # No failure of ours: the test says it again, and everything else is tested.
    echo "toad is left out: it needs Python 3.14, or 3.13, and neither is here" >&2
    mkdir -p "$(dirname "$place")"
    touch "$place.left-out"
    exit 0
fi
rm -f "$place.left-out"
echo "installing toad $version (PyPI: batrachian-toad, 90 MB) in $place (once) ..."
rm -rf "$place"
"$python" -m venv "$place"
# What pip compiled would be without what on_python_3_13.py changes.
. "$here/../fetching.sh"
again "toad $version" "$place/bin/pip" install --quiet --no-compile --ignore-requires-python "batrachian-toad==$version"
if "$place/bin/python" -c 'import sys; sys.exit(sys.version_info >= (3, 14))'; then
    cp "$here/on_python_3_13.py" "$place/lib/python3.13/site-packages/sitecustomize.py"
fi
touch "$place/.installed"
