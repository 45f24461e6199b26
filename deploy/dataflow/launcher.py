"""What the launcher of a flex template starts: the template's program."""

from pipelines.template import main

if __name__ == "__main__":
    main()
