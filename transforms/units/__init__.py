"""Work units: plans, content-defined boundaries, claims, and running each unit once.

Code that every stage needs to split and publish work belongs here. What one stage does within a unit does not.
"""
