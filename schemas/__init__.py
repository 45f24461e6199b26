"""What all packages agree on: Arrow schemas, frozen records, options, reasons, digests, and the Arrow coder for Beam.

A definition that two packages need belongs here. It imports no other package, and does no work of its own.
"""
