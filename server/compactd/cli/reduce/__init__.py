"""The command `reduce`: a filter for a shell that leaves out what a model does not need."""
