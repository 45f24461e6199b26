"""The runnable programs: one Beam pipeline a stage, and the command line that starts them."""
