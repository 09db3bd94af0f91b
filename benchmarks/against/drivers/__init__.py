"""The peers' sides, each run by its own interpreter: no module here imports another package of this tree."""
