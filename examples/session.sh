#!/bin/sh
# A client of the daemon in shell and jq. A conversation that outgrows its window is compacted and continues.
#
#   sh examples/session.sh            needs jq and a `compactd` on the PATH
#   COMPACTD=".venv/bin/compactd serve" sh examples/session.sh
set -eu
pipes=$(mktemp -d)
trap 'rm -rf "$pipes"' EXIT
mkfifo "$pipes/in" "$pipes/out"
${COMPACTD:-compactd serve} <"$pipes/in" >"$pipes/out" &
exec 3>"$pipes/in" 4<"$pipes/out"

ask() { # METHOD PARAMS: prints the result; events pass by
    jq -cn --arg method "$1" --argjson params "$2" '{jsonrpc: "2.0", id: 1, $method, $params}' >&3
    while read -r line <&4; do
        case $line in *'"id":1,'*) printf '%s' "$line" | jq -c '.result // error(.error.message)'; return ;; esac
    done
}

id=$(ask session/start '{"compaction": {"context_window": 20000}}' | jq .session_id)

# Forty messages, more than fit into the window. Each answer says whether a compaction is due.
messages=$(jq -cn '[range(40) | {role: (if . % 2 == 0 then "user" else "assistant" end), content: ("line \(.) " * 200)}]')
ask session/append "{\"session_id\": $id, \"messages\": $messages}" | jq -r '"the next request: \(.decision.kind)"'

# Before each request to a model: compact if that is due. Then get the messages to send, in your model's format.
ask turn/begin "{\"session_id\": $id}" | jq -r '"compacted: \(.compaction.compacted)"'
ask session/context "{\"session_id\": $id, \"format\": \"openai\"}" >"$pipes/request"
jq -r '"to send: \(.messages | length) messages, the first by the \(.messages[0].role), below 10,000 tokens: \(.tokens < 10000)"' "$pipes/request"

# If the daemon answers with an error, `ask` fails and prints the daemon's message.
ask session/undo "{\"session_id\": $id}" || echo "refused: the undone conversation would not fit"

exec 3>&-
wait $! && echo "ended well"
