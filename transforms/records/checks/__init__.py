"""Checks of a finished run or of a copy of it: rows, proofs and unit receipts are compared with the record.

Code that reads the contents of a run to prove its receipt belongs here. What is checked without contents is in the
record that says it.
"""
