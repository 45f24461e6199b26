"""What a command shows while it runs and afterwards: progress, events, signals, status.

Anything that reports on a run belongs here. It never changes what a run does.
"""
