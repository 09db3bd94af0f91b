"""The contenders' child processes, each run by its own interpreter and without imports of other packages."""
