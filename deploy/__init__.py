"""What it takes to run cppmill elsewhere than in one process: engines on this machine, containers, Dataflow.

Never shipped: it is run from the checkout.
"""
