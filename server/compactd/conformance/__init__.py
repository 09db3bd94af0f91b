"""The laws and the wire as a black-box suite."""
