"""The HTML report of a finished run: facts from its files, sections, plots, one page.

What the page shows belongs here. It reads the run's files and computes no new data.
"""
