"""Five daemons on one PostgreSQL database, while nodes, connections and servers fail."""
