"""What a Cloud Run job starts: the command that parameters of the template name, without a job around it."""

from pipelines.cli.template import run_here

if __name__ == "__main__":
    run_here()
