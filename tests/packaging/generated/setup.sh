#!/bin/sh
# Installs the generators: datamodel-code-generator (PyPI) as requirements.txt pins it, into a virtual environment
# at VENV, and json-schema-to-typescript with TypeScript's compiler (npm) as package-lock.json does. Needs the
# network once.   VENV=.cache/generators PYTHON=python3 sh tests/packaging/generated/setup.sh
set -eu
here=$(dirname "$0")
if ! cmp -s "$here/requirements.txt" "$VENV/.installed"; then
    rm -rf "$VENV"
    "${PYTHON:-python3}" -m venv "$VENV"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
    cp "$here/requirements.txt" "$VENV/.installed"
fi
cd "$here"
if ! cmp -s package-lock.json node_modules/.installed; then
    npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --no-update-notifier --loglevel=error
    cp package-lock.json node_modules/.installed
fi
