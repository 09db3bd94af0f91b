"""The engine: functions from values to values, without clock, ids, files, logging or network."""
