"""The stages of a run, each a program that wires sources, transforms and an engine, and the run of all of them.

What drives a flow belongs here; what it does to data belongs in `transforms`, and exports have their own folder.

To add a stage:

1. name it in `schemas.units` (`Stage`, `RUN_STAGES`, and `RECEIPT_FOLDERS` for its folder of OUT),
2. write its flow in a folder of `transforms`, as a function of a unit, run by `RunUnits`,
3. write its module here, with a `PROGRAM` (`program.StageProgram`), and list it in `run.PROGRAMS`, and what runs its
   units in `peers.FLOWS`,
4. add its command to `pipelines.cli.app`, and its files to `transforms.storage.protocol`.
"""
