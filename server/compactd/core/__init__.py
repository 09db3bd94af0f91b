"""The engine: values in, values out. No clock, ids, files, logging or network."""
