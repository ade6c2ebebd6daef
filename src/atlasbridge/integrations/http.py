"""One question over HTTP: it is repeated until it is decided, also after lost connections and restarts of the hub.

We choose the question's id, so that asking again is the same question with the same answer.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from ssl import SSLContext
from typing import Any
from urllib.parse import urlencode, urlsplit

from atlasbridge.core.errors import AtlasBridgeError, ConfigError, HubUnavailable
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import Answer, Prompt
from atlasbridge.core.prompt.question import Handed, Question

# A client for the hub's HTTP API: requests and streams with a token, to a hub that has proven its identity first.
# Blocking, standard library only.

API = "/api/v1"
REQUEST_S = 30.0
SILENCE_S = 45.0  # a stream sends something every fifteen seconds
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Refused(AtlasBridgeError):
    """The hub refused the request; `reason` is its code."""

    def __init__(self, reason: str, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.status = status


class HttpClient:
    """`url` is the page's address, such as http://127.0.0.1:8484; `atlasbridge token add` creates the token."""

    def __init__(self, url: str, token: str, tls: SSLContext | None = None) -> None:
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise ConfigError(f"{url!r} is no address of a hub", "such as http://127.0.0.1:8484")
        if place.scheme == "http" and place.hostname not in _LOOPBACK:
            raise ConfigError("a token is never sent over an open wire", "use https, or an ssh tunnel to 127.0.0.1")
        self._host, self._secure, self._tls = place.hostname, place.scheme == "https", tls
        self._port = place.port or (443 if self._secure else 80)
        self._token = token.strip()
        if len(self._token.split("_", 2)) != 3:
            raise ConfigError("this is no token of a hub", "make one with: atlasbridge token add NAME --scope ask")

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        connection = self.connect(REQUEST_S)
        try:
            answer: dict[str, Any] = json.loads(self._send(connection, method, path, body).read())
            return answer
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise HubUnavailable(f"the hub went away: {error}") from error
        finally:
            connection.close()

    def stream(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, last_id: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield id and data of each event until the hub ends the stream. Raises HubUnavailable if it breaks."""
        more = {"Last-Event-ID": last_id} if last_id else {}
        try:
            response = self._send(connection, method, path, body, more)
            connection.sock.settimeout(SILENCE_S) if connection.sock else None
            event_id = ""
            while line := response.readline():
                name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(": ")
                if name == "id":
                    event_id = value
                elif name == "data":
                    yield event_id, json.loads(value)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise HubUnavailable(f"the hub went away: {error}") from error

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """Open a connection to a hub that has proven to know the token; only then is the token sent."""
        connection = self._open(timeout_s)
        try:
            connection.connect()
            connection.auto_open = 0  # never reconnect silently: the new peer would have proven nothing
            self._check(connection)
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            raise HubUnavailable(f"no hub answers at {self._host}:{self._port}: {error}") from error
        except AtlasBridgeError:
            connection.close()
            raise
        return connection

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)

    def _check(self, connection: http.client.HTTPConnection) -> None:
        _, who, secret = self._token.split("_", 2)
        challenge = secrets.token_hex(16)
        connection.request("GET", f"{API}/hello?{urlencode({'who': who, 'challenge': challenge})}")
        response = connection.getresponse()
        told = json.loads(response.read())
        if response.status == 401:
            raise Refused("unauthorized", "this hub does not know the token", 401)
        key = hashlib.sha256(secret.encode()).hexdigest().encode()
        wanted = hmac.new(key, "\n".join(("hub", challenge, str(told.get("epoch")), who)).encode(), "sha256")
        if response.status != 200 or not hmac.compare_digest(wanted.hexdigest(), str(told.get("proof"))):
            raise Refused("not_the_hub", "what answers there is not the hub of this token: nothing was sent to it")

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any,
        more: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self._token}", **(more or {})}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection.request(method, API + path, content, headers)
        response = connection.getresponse()
        if response.status >= 400:
            told = json.loads(response.read())
            if not isinstance(told, dict) or not told.get("message"):
                raise ValueError(f"a proxy answered {response.status}")  # a hub always says why
            raise Refused(str(told.get("error", "")), str(told["message"]), response.status)
        return response


RETRY_S = 0.25


def is_temporary(status: int) -> bool:
    """The hub is busy, or a proxy in between cannot reach it."""
    return status == 429 or status >= 500


class HttpQuestion:
    """Like `OpenQuestion`: `ask` blocks, `withdraw` can be called from another thread or a signal handler."""

    def __init__(self, client: HttpClient, question: Question, label: str) -> None:
        self._client = client
        self._question = question
        self._label = label
        self._id = new_id()
        self._left = threading.Event()
        self._connection: http.client.HTTPConnection | None = None

    def withdraw(self) -> None:
        self._left.set()
        connection = self._connection
        try:
            if connection is not None and connection.sock is not None:
                connection.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads
        except OSError:
            pass  # it has ended by itself

    def ask(self, prompt: Prompt, ttl_s: float | None = None) -> Handed:
        asked = False
        while not self._left.is_set():
            try:
                handed = self._listen(ttl_s)
                if handed is not None:
                    return handed
                asked = True
            except HubUnavailable:
                if not asked and self._connection is None:
                    raise  # no hub was there at the first attempt
                asked = True
            except Refused as refused:
                if not asked or not is_temporary(refused.status):
                    raise
            self._left.wait(RETRY_S)
        self._say_withdrawn()
        return Handed("withdrawn")

    def _listen(self, ttl_s: float | None) -> Handed | None:
        """Wait until it is decided; None means ask again."""
        connection = self._client.connect(REQUEST_S)
        self._connection = connection
        try:
            for _, said in self._client.stream(connection, "POST", "/questions", self._body(ttl_s)):
                match said.get("outcome"):
                    case None:
                        continue
                    case "lost":
                        self._id = new_id()  # the secret was lost with its hub
                        return None
                    case "answered":
                        answer = Answer.from_json(said["answer"])
                        return Handed("answered", answer, str(said.get("by", "")))
                    case outcome:
                        return Handed(str(outcome))
            return None
        finally:
            connection.close()

    def _body(self, ttl_s: float | None) -> dict[str, Any]:
        asked = self._question
        return {
            "question_id": self._id,
            "question": asked.text,
            "choices": list(asked.choices),
            "text": asked.takes_text,
            "secret": asked.secret,
            "default": asked.default,
            "ttl_s": ttl_s,
            "label": self._label[:120],
            "folder": asked.folder,
            "kind": asked.kind.value,
            "about": asked.about,
            "target": asked.target,
        }

    def _say_withdrawn(self) -> None:
        try:
            self._client.request("DELETE", f"/questions/{self._id}")
        except (HubUnavailable, Refused):
            pass  # no hub, or it was never asked; without a reconnection the question is withdrawn anyway
