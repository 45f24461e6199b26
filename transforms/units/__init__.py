"""Work units: plans, content-defined boundaries, and running each unit once.

What every stage needs to split work and to publish it belongs here. What one stage does within a unit does not.
"""
