"""The page of a run that is at work: served to this machine alone, and renewed from JSON."""

import json
import signal
import socket
import struct
import subprocess
import threading
import urllib.error
import urllib.request
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipelines.report.live import StatusServer

EXAMPLE = "$ cppmill status OUT --serve\n"


@pytest.fixture
def served(copied_run, cppmill, processes, repository):
    """The address that the example of the documentation printed; the command ends by Ctrl-C as it should."""
    cppmill(*copied_run.command)
    assert EXAMPLE in (repository / "docs/how-to/running.md").read_text()
    words = EXAMPLE.replace("OUT", str(copied_run.out)).split()[2:]
    with processes.command(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[1] == "stopped by Ctrl-C\n"
    assert process.returncode == 130


class Held(SimpleHTTPRequestHandler):
    """Serves a folder, and the files in it only once they are let go."""

    go_on = threading.Event()

    def do_GET(self):
        if self.path.endswith(".h"):
            self.go_on.wait(60)
        super().do_GET()

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def source(run, tmp_path):
    """A source whose files come when `Held.go_on` is set."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.h").write_text("int a;\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Held, directory=tmp_path / "served")) as server:
        Held.go_on.clear()
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        Held.go_on.set()
        server.shutdown()


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.headers, answer.read().decode()


def test_page_and_status_are_served_to_this_machine_until_ctrl_c(copied_run, served):
    assert served.startswith("http://127.0.0.1:")
    headers, page = get(served)
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy + page
    assert str(copied_run.out) in page
    assert "http://" not in page
    said = json.loads(get(f"{served}status.json")[1])
    assert (said["out"], said["state"], said["receipt"]) == (str(copied_run.out), "done", copied_run.receipt["digest"])
    assert {stage["stage"] for stage in said["stages"]} >= {"ingest", "tokenize"}
    for path, host, code in (("x", "localhost", 404), ("status.json", "evil.example", 403)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(served + path, Host=f"{host}:80")
        refused.value.close()
        assert refused.value.code == code


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8000", "127.0.0.1:1"])
def test_this_machine_may_ask_by_either_name_and_at_port_80_without_a_port(tmp_path, host):
    with StatusServer(str(tmp_path)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        assert str(tmp_path) in get(server.url, Host=host)[1]
        server.shutdown()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "me@localhost:80", "localhost.", ""])
def test_a_page_of_another_host_is_refused(tmp_path, host):
    with StatusServer(str(tmp_path)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(server.url, Host=host)
        server.shutdown()
    refused.value.close()
    assert refused.value.code == 403


def test_a_folder_whose_name_is_a_script_is_text(tmp_path):
    hostile = tmp_path / "<script>alert(1)<"
    with StatusServer(str(hostile)) as server:
        status, _, content = server.answer("/status.json")
    assert b"<script>alert" not in server.page
    assert status == 503
    assert "no run" in json.loads(content)["message"]


@pytest.mark.engines
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_in_silence_and_renews_it(copied_run, browser, scheme):
    with StatusServer(str(copied_run.out)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        page, said, asked = browser.new_page(color_scheme=scheme, viewport={"width": 400, "height": 900}), [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(server.url)
        page.locator("#state", has_text="done").wait_for()
        assert page.locator("#stages tr").count() >= 5
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        (copied_run.out / "receipt.json").unlink()
        page.evaluate("refresh()")
        page.locator("#facts dd", has_text="none").wait_for()
        server.shutdown()
    assert said == []
    assert {url.removeprefix(server.url) for url in asked} == {"", "status.json"}
    page.close()


@pytest.mark.engines
def test_a_browser_follows_a_run_while_it_works(run, source, browser, processes, tmp_path):
    out, said = tmp_path / "out", []
    words = ("run", source, "--out", out, "--tokenizer", run.out / "tokenizer", "--quiet")
    with StatusServer(str(out)) as server, processes.command(*words) as process:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        page = browser.new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(server.url)
        page.locator("#state[data-state=running]").wait_for()
        page.locator("#stages td", has_text="0 of 1").first.wait_for()
        assert page.locator("#facts dd", has_text="none").count() == 1
        Held.go_on.set()
        page.locator("#state[data-state=done]").wait_for()
        receipt = json.loads((out / "receipt.json").read_bytes())
        page.locator("#facts dd", has_text=receipt["digest"]).wait_for()
        assert page.locator("#stages tr").count() >= 4
        server.shutdown()
    assert (process.returncode, said) == (0, [])
    page.close()


def test_a_browser_that_goes_away_leaves_no_traceback(tmp_path, capfd):
    with StatusServer(str(tmp_path)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        for _ in range(10):
            client = socket.create_connection(server.server_address)
            client.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n" * 99)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closes by a reset
            client.close()
        with socket.create_connection(server.server_address) as client:
            client.sendall(b"GET / HT")
            handler = server.RequestHandlerClass
            assert handler.timeout, "a request that never ends holds a thread for ever"
        assert str(tmp_path) in get(server.url)[1]
        server.shutdown()
    assert "Traceback" not in capfd.readouterr().err
