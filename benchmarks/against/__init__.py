"""Speed against everybody: the programs that do what compactd does, measured beside it in one run."""
