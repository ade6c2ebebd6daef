"""A real Matrix homeserver: Synapse from PyPI, in an environment of its own, on loopback; accounts by a shared secret.

`tools/install-extras` puts it beside the AI CLIs; `ATLASBRIDGE_SYNAPSE` names another Python that has it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

SECRET = "registration-secret-of-a-test"
CONFIG = """
server_name: localhost
pid_file: {folder}/pid
listeners: [{{port: {port}, bind_addresses: ['127.0.0.1'], type: http, resources: [{{names: [client]}}]}}]
database: {{name: sqlite3, args: {{database: '{folder}/db'}}}}
media_store_path: {folder}/media
signing_key_path: {folder}/key
registration_shared_secret: {secret}
macaroon_secret_key: m
form_secret: f
report_stats: false
suppress_key_server_warning: true
trusted_key_servers: []
rc_message: {{per_second: 1000, burst_count: 1000}}
rc_login: {{address: {{per_second: 1000, burst_count: 1000}}, account: {{per_second: 1000, burst_count: 1000}}}}
"""


def synapse_python() -> str:
    if given := os.environ.get("ATLASBRIDGE_SYNAPSE"):
        return given
    tools = Path(os.environ.get("ATLASBRIDGE_TOOLS") or Path(__file__).parents[2] / ".venv" / "tools")
    python = tools / "synapse" / "bin" / "python"
    assert python.exists(), "there is no Synapse: run tools/install-extras"
    return str(python)


class Synapse:
    def __enter__(self) -> Synapse:
        self._folder = tempfile.TemporaryDirectory(prefix="ab-synapse-")
        folder = Path(self._folder.name)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        config = folder / "hs.yaml"
        config.write_text(CONFIG.format(folder=folder, port=self._port, secret=SECRET))
        self._command = [synapse_python(), "-m", "synapse.app.homeserver", "--config-path", str(config)]
        subprocess.run([*self._command, "--generate-keys"], check=True, cwd=folder, capture_output=True)
        self._log = (folder / "log").open("w")
        self.start()
        return self

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, cwd=self._folder.name, stdout=self._log, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{self.url}/_matrix/client/versions", timeout=1).raise_for_status()
                return
            except httpx.HTTPError:
                assert time.monotonic() < deadline and self._process.poll() is None, "Synapse did not start"
                time.sleep(0.1)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._log.close()
        self._folder.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def register(self, name: str) -> Account:
        address = f"{self.url}/_synapse/admin/v1/register"
        nonce = httpx.get(address).json()["nonce"]
        mac = hmac.new(SECRET.encode(), "\x00".join([nonce, name, "secret", "notadmin"]).encode(), hashlib.sha1)
        body = {"nonce": nonce, "username": name, "password": "secret", "admin": False, "mac": mac.hexdigest()}
        made = httpx.post(address, json=body).json()
        return Account(self.url, made["access_token"], made["user_id"])


class Account:
    """A person, by the client-server interface."""

    def __init__(self, url: str, token: str, user: str) -> None:
        self.token, self.user = token, user
        self._http = httpx.Client(
            base_url=f"{url}/_matrix/client/v3", headers={"Authorization": f"Bearer {token}"}, timeout=20
        )

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self._http.request(method, path, json=body if method != "GET" else None)
        answer.raise_for_status()
        return dict(answer.json())

    def create_room(self, *invited: str) -> str:
        return str(self.call("POST", "/createRoom", {"preset": "private_chat", "invite": list(invited)})["room_id"])

    def join(self, room: str) -> None:
        self.call("POST", f"/join/{room}", {})

    def send(self, room: str, kind: str, content: dict[str, Any], txn: str) -> str:
        return str(self.call("PUT", f"/rooms/{room}/send/{kind}/{txn}", content)["event_id"])

    def reads(self, room: str) -> list[dict[str, Any]]:
        """The oldest first."""
        return list(self.call("GET", f"/rooms/{room}/messages?dir=b&limit=100")["chunk"])[::-1]

    def close(self) -> None:
        self._http.close()
