"""The stages of cppmill as transforms of Beam, for pipelines of your own: `cppmill.beam` gives all of it.

Each takes a PCollection of `pyarrow.RecordBatch` or of rows, and gives batches with a stated schema; `ToRows` makes
Beam rows of them. The functions behind them, which do not know Beam, are those of the stages.
"""
