"""Publishing a run: the dataset card and provenance in standard formats.

Programs that describe a run for other tools belong here. The records themselves belong in `transforms.records`.
"""
