"""Git trees as snapshots of a user's work tree. The user's repository is never written."""
