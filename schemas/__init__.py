"""What the stages agree on: Arrow schemas, frozen records, reasons, digests, and the Arrow coder for Beam."""
