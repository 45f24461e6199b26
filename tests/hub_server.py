"""A stand-in for the Hugging Face Hub: the part of its HTTP API that pushing a dataset and reading it needs.

Repositories, branches and files are in memory; large files go the way of Git LFS. Tests see what was asked for, and can
have requests fail.
"""

import base64
import json
import re
import threading
from collections import defaultdict
from contextlib import suppress
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

LARGE = (".parquet",)
COMMAND_LINE = """
import huggingface_hub.constants as constants
constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_XET = False, True
from cppmill import main
main()
"""
"""The command line in a process of its own, which takes the stand-in for the Hub."""


DOWNLOADER = """
import os
import huggingface_hub.constants as constants
constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_XET, constants.ENDPOINT = False, True, os.environ["HF_ENDPOINT"]
constants.HUGGINGFACE_CO_URL_TEMPLATE = f"{constants.ENDPOINT}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
from huggingface_hub.cli.hf import main
main()
"""
"""The command line of huggingface_hub, which takes the stand-in too."""


class HubServer:
    """The stand-in, on a free port of 127.0.0.1; a context manager that stops it.

    Attributes:
        repositories: By name, then by branch, the bytes of each path; who made one private.
        requests: Method and path of every request, in order.
        failures: Takes (method, path) and returns a status to answer with instead, or None; may block.
    """

    def __init__(self):
        self.repositories = defaultdict(dict)
        self.visibility, self.objects, self.requests = {}, {}, []
        self._commits, self._committing = {}, threading.Lock()
        self.failures = lambda method, path: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def uploads(self):
        """The digests of the large files that were sent, in order."""
        return [path.rpartition("/")[2] for method, path in self.requests if method == "PUT"]

    def answer(self, method, path, body):
        """Return status, headers and bytes."""
        for pattern, action in ROUTES:
            found = re.fullmatch(pattern, path)
            if found:
                return action(self, body, *map(unquote, found.groups()))
        return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"

    def files(self, name, revision):
        """The files of a branch or commit, None if there is none."""
        return self.repositories.get(name, {}).get(revision, self._commits.get(revision))

    def head(self, name, revision):
        """The last commit of a branch: a digest of its files, which tests may have changed."""
        files = self.files(name, revision)
        entries = json.dumps(sorted((path, entry(path, data)["oid"]) for path, data in files.items()))
        commit = sha1(entries.encode(), usedforsecurity=False).hexdigest()
        self._commits[commit] = dict(files)
        return commit

    def create(self, body, *_):
        given = json.loads(body)
        name = f"{given['organization']}/{given['name']}"
        url = {"url": f"{self.url}/datasets/{name}", "id": name}
        if name in self.repositories:
            return 409, {}, json.dumps(url).encode()
        self.visibility[name] = given.get("visibility")
        self.repositories[name]["main"] = {".gitattributes": b"*.parquet filter=lfs\n"}
        return as_json(url)

    def branch(self, body, name, branch):
        if branch in self.repositories[name]:
            return 409, {}, b"{}"
        self.repositories[name][branch] = dict(self.repositories[name]["main"])
        return as_json({})

    def modes(self, body, name, revision):
        files = [entry["path"] for entry in json.loads(body)["files"]]
        modes = {path: "lfs" if path.endswith(LARGE) else "regular" for path in files}
        return as_json(
            {"files": [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in modes.items()]}
        )

    def batch(self, body, name):
        objects = []
        for wanted in json.loads(body)["objects"]:
            upload = {"upload": {"href": f"{self.url}/objects/{wanted['oid']}"}}
            objects.append({**wanted, **({} if wanted["oid"] in self.objects else {"actions": upload})})
        return as_json({"transfer": "basic", "objects": objects})

    def put(self, body, oid):
        if sha256(body).hexdigest() != oid:
            return 400, {}, b"{}"
        self.objects[oid] = body
        return 200, {}, b""

    def commit(self, body, name, revision):
        with self._committing:
            return self._commit(body, name, revision)

    def _commit(self, body, name, revision):
        files = dict(self.repositories[name][revision])
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header" and value.get("parentCommit", head := self.head(name, revision)) != head:
                return 412, {}, b'{"error": "A commit has happened since. Please refresh and try again."}'
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.objects[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        self.repositories[name][revision] = files
        commit = self.head(name, revision)
        return as_json({"commitUrl": f"{self.url}/datasets/{name}/commit/{commit}", "commitOid": commit})

    def tree(self, body, name, revision, below=""):
        files = self.files(name, revision)
        if files is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        found = [entry(path, data) for path, data in files.items() if path.startswith(below.strip("/"))]
        if "recursive=true" in self.query.lower():
            parents = {str(parent) for item in found for parent in PurePosixPath(item["path"]).parents}
            found += [folder(path) for path in sorted(parents - {"."}) if path.startswith(below.strip("/"))]
        else:
            found = list({item["path"]: item for item in map(cut(below.strip("/")), found)}.values())
        return as_json(found)

    def paths(self, body, name, revision):
        asked, files = parse_qs(body.decode())["paths"], self.files(name, revision) or {}
        found = [entry(path, files[path]) for path in asked if path in files]
        folders = [path for path in asked if any(known.startswith(f"{path}/") for known in files)]
        return as_json(found + [folder(path) for path in folders])

    def info(self, body, name, revision="main"):
        if self.files(name, revision) is None:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        return as_json({"id": name, "sha": self.head(name, revision), "siblings": []})

    def resolve(self, body, name, revision, path):
        data = (self.files(name, revision) or {}).get(path)
        if data is None:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        return 200, {"ETag": f'"{sha256(data).hexdigest()}"', "X-Repo-Commit": self.head(name, revision)}, data


def as_json(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def entry(path, data):
    """Describe a file as the Hub does."""
    oid = sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    found = {"type": "file", "path": path, "size": len(data), "oid": oid}
    if path.endswith(LARGE):
        found["lfs"] = {"oid": sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return found


def folder(path):
    return {"type": "directory", "path": path, "oid": 40 * "d", "size": 0}


def cut(below):
    """Return a function from an entry to what is directly below a folder: itself, or the folder that it is in."""
    depth = below.count("/") + 1 if below else 0

    def shorten(item):
        parts = item["path"].split("/")
        return item if len(parts) == depth + 1 else folder("/".join(parts[: depth + 1]))

    return shorten


NAME = r"([\w.-]+/[\w.-]+)"
ROUTES = [
    (r"/api/repos/create", HubServer.create),
    (r"/api/validate-yaml", lambda server, body: as_json({"errors": [], "warnings": []})),
    (rf"/api/datasets/{NAME}/branch/(.+)", HubServer.branch),
    (rf"/api/datasets/{NAME}/preupload/(.+)", HubServer.modes),
    (rf"/api/datasets/{NAME}/commit/(.+)", HubServer.commit),
    (rf"/api/datasets/{NAME}/tree/([^/]+)(/.*)", HubServer.tree),
    (rf"/api/datasets/{NAME}/tree/([^/]+)", HubServer.tree),
    (rf"/api/datasets/{NAME}/paths-info/(.+)", HubServer.paths),
    (rf"/api/datasets/{NAME}/revision/(.+)", HubServer.info),
    (rf"/api/datasets/{NAME}", HubServer.info),
    (rf"/datasets/{NAME}\.git/info/lfs/objects/batch", HubServer.batch),
    (rf"/datasets/{NAME}/resolve/([^/]+)/(.+)", HubServer.resolve),
    (r"/objects/(\w+)", HubServer.put),
]


def _handler(hub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self):
            body, url = self._body(), urlsplit(self.path)
            hub.requests.append((self.command, url.path))
            hub.query = url.query
            status = hub.failures(self.command, url.path)
            status, headers, data = (status, {}, b"{}") if status else hub.answer(self.command, url.path, body)
            self._send(status, headers, data)

        do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815

        def _body(self):
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            chunks = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _send(self, status, headers, data):
            found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            if found and status == 200:
                first, last = int(found[1]), min(int(found[2] or len(data) - 1), len(data) - 1)
                headers = {**headers, "Content-Range": f"bytes {first}-{last}/{len(data)}"}
                status, data = 206, data[first : last + 1]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(b"" if self.command == "HEAD" else data)
                self.wfile.flush()

        def log_message(self, *_):
            """Say nothing."""

    return Handler


@pytest.fixture
def hub_server(monkeypatch):
    """The stand-in, which this process and its children take for the Hub; no pause lasts."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    with HubServer() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        yield running
