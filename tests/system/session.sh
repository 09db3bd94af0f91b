#!/bin/sh
# A whole session with the daemon, in a shell: `COMPACTD="compactd serve" sh session.sh`. Needs jq.
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
messages=$(jq -cn '[range(40) | {role: (if . % 2 == 0 then "user" else "assistant" end), content: ("line \(.) " * 200)}]')
ask session/append "{\"session_id\": $id, \"messages\": $messages}" | jq -r .decision.kind
ask turn/begin "{\"session_id\": $id}" | jq -r .compaction.compacted
ask session/context "{\"session_id\": $id, \"format\": \"openai\"}" | jq -r '.messages[0].role, .tokens < 10000'
ask session/undo "{\"session_id\": $id}" || echo refused
exec 3>&-
wait $! && echo "ended well"
