"""Dataset versions: scheduled retokenization, what changed between two runs, and verification.

Programs that compare or check finished runs belong here. Making a run belongs in `stages`.
"""
