"""The runnable programs: one Beam pipeline per stage, and the command line that starts them.

Wiring belongs here: options to transforms, engines, progress. Anything that touches documents or tokens belongs in
`transforms`.
"""
