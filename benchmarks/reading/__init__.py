"""A blind reading test: can a reader of a hand-over text go on with the work?"""
