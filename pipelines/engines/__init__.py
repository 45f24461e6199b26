"""The engines that a pipeline runs on: what each needs, which of Beam's options it sets, and what its workers do.

What differs between engines belongs here. What a pipeline does belongs in `stages`.

To add an engine:

1. name it in `configs.execution` (`EngineName`, and `ONE_PROCESS_ENGINES` if its units share one process),
2. write a class like `prism.Prism` in a module here and list it in `execution.ENGINES`,
3. if it must be fetched, add it to `cache` and to `deploy.local.fetch`; for the comparison of engines, to
   `stages.equivalence.all_ways`.
"""
