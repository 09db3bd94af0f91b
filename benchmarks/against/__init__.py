"""Speed comparison with other programs that do what compactd does, all measured in the same run."""
