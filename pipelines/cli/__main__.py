"""`python -m pipelines.cli`: the command line without its installed script."""

from pipelines.cli.app import main

main()
