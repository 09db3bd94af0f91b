"""The proof: runs faults, attacks and fuzz for minutes or an hour, and writes a table of the results."""
