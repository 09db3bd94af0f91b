"""Session files of other agents and message formats of providers: readers and writers, one file
per format.
"""
