"""HTML pages of runs: the report of a finished one from its files, and the page of one that is at work.

What a page shows belongs here. It reads the run's files and computes no new data.
"""
