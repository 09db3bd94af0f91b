"""A store of sessions in a PostgreSQL database. Only this package imports psycopg."""
