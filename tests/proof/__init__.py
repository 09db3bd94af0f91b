"""The proof: faults, attacks and fuzz in a size of minutes or of an hour, and the table of them."""
