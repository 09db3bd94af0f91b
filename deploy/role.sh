#!/bin/sh
# Creates the role of the nodes when the database is made. It owns no table, so that row-level security holds.
set -eu
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$AGENTS_PASSWORD" <<'SQL'
CREATE ROLE agents LOGIN PASSWORD :'password';
SQL
