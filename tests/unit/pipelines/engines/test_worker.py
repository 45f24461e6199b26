"""A worker is told its job as a container is, and writes to a file of its own."""

import argparse
import json
import os
import subprocess
from concurrent import futures

import grpc
import pytest
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc, endpoints_pb2
from google.protobuf import struct_pb2

from pipelines.engines.worker import LOG_FOLDER_VARIABLE, container_environment, log_file


class Provisioner(beam_provision_api_pb2_grpc.ProvisionServiceServicer):
    """Tells of a job, to the worker that it is for."""

    def GetProvisionInfo(self, request, context):  # noqa: N802 - the name that the service has
        assert dict(context.invocation_metadata())["worker_id"] == "1-2"
        options = struct_pb2.Struct()
        options.update({"beam:option:pickle_library:v1": "cloudpickle"})
        info = beam_provision_api_pb2.ProvisionInfo(
            pipeline_options=options,
            control_endpoint=endpoints_pb2.ApiServiceDescriptor(url="localhost:1"),
            logging_endpoint=endpoints_pb2.ApiServiceDescriptor(url="localhost:2"),
        )
        return beam_provision_api_pb2.GetProvisionInfoResponse(info=info)


@pytest.fixture
def provisioner():
    with futures.ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        beam_provision_api_pb2_grpc.add_ProvisionServiceServicer_to_server(Provisioner(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(None).wait()


def test_endpoints_and_options_are_those_that_the_engine_provisions(provisioner):
    given = argparse.Namespace(id="1-2", provision_endpoint=provisioner, control_endpoint="", logging_endpoint="here:3")
    found = container_environment(given)
    assert found["WORKER_ID"] == "1-2"
    assert found["CONTROL_API_SERVICE_DESCRIPTOR"].strip() == 'url: "localhost:1"'
    assert found["LOGGING_API_SERVICE_DESCRIPTOR"].strip() == 'url: "here:3"'
    assert json.loads(found["PIPELINE_OPTIONS"]) == {"beam:option:pickle_library:v1": "cloudpickle"}


def test_its_file_is_in_the_given_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(LOG_FOLDER_VARIABLE, str(tmp_path / "logs"))
    assert log_file("1/2") == tmp_path / "logs" / f"worker-1-2-{os.getpid()}.log"
    assert (tmp_path / "logs").is_dir()


def test_nothing_goes_to_the_output_that_no_engine_reads(tmp_path, processes):
    arguments = ["--id=1-1", "--provision_endpoint=127.0.0.1:1"]
    script = f"from pipelines.engines import worker; worker._ANSWER_SECONDS = 0.01; worker.main({arguments})"
    environment = os.environ | {LOG_FOLDER_VARIABLE: str(tmp_path)}
    with processes.start(script, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        printed = process.communicate()
    assert (process.returncode, *printed) == (1, "", "")
    [log] = tmp_path.iterdir()
    assert "Traceback" in log.read_text()
