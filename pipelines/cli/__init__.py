"""The command line: one module for each group of commands, each turning arguments into a call of a program.

Arguments, help and printed tables belong here. Programs are imported when their command runs, and hold all logic.
"""
