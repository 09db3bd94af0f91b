"""What commands share: parsing, output, files, exit codes, completion."""
