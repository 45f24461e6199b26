"""What Terraform starts is what the image has: the template's parameters, and the program of the Cloud Run job."""

import json
import re
import shutil
import subprocess

import pytest

from pipelines.cli.template import split_parameters


@pytest.fixture(scope="module")
def folder(repository):
    return repository / "deploy/terraform"


@pytest.fixture(scope="module")
def parameters(folder):
    """The names of the parameters that jobs get, those of some variants too."""
    text = (folder / "job.tf").read_text()
    [block] = re.findall(r"^  parameters = merge\($.*?^  \)$", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"(?:^ {6}|\{ )([a-z0-9_]+) += ", block, re.MULTILINE)


def test_every_parameter_is_one_of_the_template(repository, parameters):
    metadata = json.loads((repository / "deploy/dataflow/metadata.json").read_bytes())
    assert len(parameters) == 7
    assert set(parameters) <= {parameter["name"] for parameter in metadata["parameters"]}


def test_the_template_makes_a_retokenization_of_them(parameters):
    values = dict.fromkeys(parameters, "7") | {"command": "retokenize", "sources": "gs://a;s3://b"}
    words, rest = split_parameters([f"--{name}={value}" for name, value in values.items()])
    assert words[:3] == ["retokenize", "gs://a", "s3://b"]
    assert {"--store", "--keep", "--threads", "--"} <= set(words)
    assert rest == ["--s3_secret=7"]


def test_the_image_has_the_program_of_the_cloud_run_job(folder, repository):
    [program] = re.findall(r'command = \["python", "/template/(.*)"\]', (folder / "cloud_run.tf").read_text())
    containerfile = (repository / "deploy/dataflow/Containerfile").read_text()
    assert re.search(rf"^COPY .*\b{re.escape(program)} .*/template/$", containerfile, re.MULTILINE)
    assert (repository / "deploy/dataflow" / program).is_file()


@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
def test_terraform_formats_the_files_no_other_way(folder, tmp_path):
    environment = {"PATH": "/usr/bin:/usr/local/bin", "HOME": str(tmp_path), "CHECKPOINT_DISABLE": "1"}
    command = [shutil.which("terraform"), "fmt", "-check", "-diff", "-recursive", "-no-color", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
