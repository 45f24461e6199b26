"""`python -m pipelines.cli`: the command line without its installed script."""

from cppmill import main

main()
