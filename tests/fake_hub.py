"""A stand-in of the Hugging Face Hub on this machine: as much of its HTTP interface as pushing and pulling use."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_token_of_the_tests"


class FakeHub(ThreadingHTTPServer):
    """Models by name: their files, at their only commit."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.models: dict[str, dict[str, bytes]] = {}
        self.downloads: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


def commit_of(files: dict[str, bytes]) -> str:
    return hashlib.sha1(b"".join(name.encode() + files[name] for name in sorted(files))).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def answer(self, status: int, content: Any, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "Invalid credentials"})
        if self.path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            known = name in self.server.models
            self.server.models.setdefault(name, {})
            return self.answer(409 if known else 200, {"url": f"{self.server.address}/{name}"})
        found = re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+)/(preupload|commit)/main", self.path)
        if not found or found[1] not in self.server.models:
            return self.answer(404, {}, X_Error_Code="RepoNotFound")
        if found[2] == "preupload":
            paths = [file["path"] for file in json.loads(body)["files"]]
            return self.answer(
                200, {"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]}
            )
        for line in map(json.loads, body.decode().splitlines()):
            if line["key"] == "file":
                self.server.models[found[1]][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        commit = commit_of(self.server.models[found[1]])
        return self.answer(
            200,
            {"commitUrl": f"{self.server.address}/{found[1]}/commit/{commit}", "commitOid": commit, "success": True},
        )

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        asked = re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+)(?:/(revision|tree)/(\w+))?", path)
        fetched = re.fullmatch(r"/([\w.-]+/[\w.-]+)/resolve/(\w+)/(.+)", path)
        name = (asked or fetched or [None, ""])[1]
        files = self.server.models.get(name)
        if files is None:
            return self.answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        commit = commit_of(files)
        revision = asked[3] if asked else fetched[2]
        if revision not in (None, "main", commit):
            return self.answer(404, {"error": "Invalid rev id"}, X_Error_Code="RevisionNotFound")
        oids = {file: hashlib.sha1(content).hexdigest() for file, content in files.items()}
        if asked and asked[2] == "tree":
            tree = [{"type": "file", "path": file, "size": len(files[file]), "oid": oids[file]} for file in files]
            return self.answer(200, tree)
        if asked:
            return self.answer(200, {"id": name, "sha": commit, "siblings": [{"rfilename": file} for file in files]})
        if fetched[3] not in files:
            return self.answer(404, {}, X_Error_Code="EntryNotFound")
        if self.command == "GET":
            self.server.downloads.append(fetched[3])
        return self.answer(200, files[fetched[3]], ETag=f'"{oids[fetched[3]]}"', X_Repo_Commit=commit)

    def do_HEAD(self) -> None:
        self.do_GET()


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A hub that listens until the end of the block."""
    with FakeHub() as hub:
        thread = threading.Thread(target=hub.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
