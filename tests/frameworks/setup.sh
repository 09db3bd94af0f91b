#!/bin/sh
# LangChain, deepagents, OpenAI Agents SDK, Pydantic AI, Claude Agent SDK, Google ADK and LiteLLM (PyPI), with pytest and what
# compactd needs, in an environment outside the tree: ${COMPACTD_TEST_CACHE:-$HOME/.cache/compactd-tests}/frameworks-HASH.
# Hermes Agent and the frameworks for Node have environments of their own. So has OpenClaw, which only `make nightly`
# installs: openclaw/setup.sh.
#   BIN=.venv/bin sh tests/frameworks/setup.sh
# If the index does not have them, they are left out, and the tests of them are skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${BIN:-}" ]; then python="$(cd "$BIN" && pwd)/python"; else python=python3; fi
place=$("$python" "$here/environment.py")
sh "$here/hermes/setup.sh"
sh "$here/node/setup.sh" || echo "the frameworks for Node: left out" >&2
if [ -e "$place/.installed" ]; then exit 0; fi
what="the frameworks (PyPI: langchain, deepagents, openai-agents, pydantic-ai-slim, claude-agent-sdk, google-adk, litellm; 900 MB)"
echo "installing $what in $place (once) ..."
fetch() {
    rm -rf "$place"
    mkdir -p "$(dirname "$place")"
    "$python" -m venv "$place"
    # Nothing is compiled: Python compiles the modules that a run imports, once.
    "$place/bin/python" -m pip install -qq --disable-pip-version-check --no-compile --require-hashes \
        -r "$here/requirements.lock"
}
. "$here/../editors/fetching.sh"
if again "$what" fetch; then touch "$place/.installed"; else echo "$what: left out" >&2; fi
