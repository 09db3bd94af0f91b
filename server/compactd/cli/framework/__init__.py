"""Code that several commands share: parsing, output, input files, exit codes, shell completion."""
