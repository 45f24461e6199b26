"""Parts of a vocabulary: the working set of some documents, and masks from bands and working sets.

What writes them belongs here; `cppmill_core.masks` and `cppmill_core.working_set` read them.
"""
