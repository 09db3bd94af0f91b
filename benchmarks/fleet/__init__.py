"""Sessions in PostgreSQL: time, memory and room, next to plain SQL, files, and frameworks' own stores."""
