"""What the launcher of a flex template starts: the template's program."""

from pipelines.cli.template import main

if __name__ == "__main__":
    main()
