"""The server: a thread a connection, one lock around everything that a test looks at."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.fake_model.reading import (
    Json,
    asks_for_title,
    read_chat,
    read_messages,
    read_responses,
)
from tests.fake_model.script import (
    Answer,
    Behaviour,
    Fail,
    Request,
    Say,
    answer_to,
    pause_before,
)
from tests.fake_model.wire import Wire, error_body, frame, wire_for

Hook = Callable[[Request], str | Answer | None]

_READERS = {"chat": read_chat, "messages": read_messages, "responses": read_responses}
_ENDINGS = (
    ("/messages/count_tokens", "count-tokens"),
    ("/messages", "messages"),
    ("/chat/completions", "chat"),
    ("/responses", "responses"),
)
_DRIP = 7
"""Bytes in one write of a slow answer: odd, so that UTF-8 sequences are split."""


class FakeModel:
    """A fake model on 127.0.0.1; a context manager, usable from any thread.

    `answer` may be set to a function of the request whose text (or `Answer`) is said instead of the
    default one; None leaves the default. `replies` names texts to say where the user's text
    contains a key.
    """

    def __init__(
        self,
        port: int = 0,
        log: Path | None = None,
        answer: Hook | None = None,
        behaviour: Behaviour = Behaviour.ANSWER,
    ) -> None:
        self.answer = answer
        self.behaviour = behaviour
        self._next: deque[Behaviour | Fail] = deque()
        self._requests: list[Request] = []
        self._departures = 0
        self._changed = threading.Condition()
        self._log = log
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.model = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="fake-model", daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Without the `/v1`: what `ANTHROPIC_BASE_URL` takes."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[Request]:
        """The requests to a model so far, oldest first (probes such as `HEAD /` are in `seen`)."""
        return [each for each in self.seen if each.kind in _READERS]

    @property
    def seen(self) -> list[Request]:
        """Every request so far."""
        with self._changed:
            return list(self._requests)

    @property
    def departures(self) -> int:
        """How many clients closed their connection before their answer was complete."""
        with self._changed:
            return self._departures

    def next(self, *behaviours: Behaviour | Fail) -> None:
        """The next model requests are treated so, one each; later ones as usual."""
        with self._changed:
            self._next.extend(behaviours)

    def clear_next(self) -> None:
        """Treat the next requests as usual after all."""
        with self._changed:
            self._next.clear()

    def clear(self) -> None:
        """Forget the requests so far."""
        with self._changed:
            self._requests.clear()
            self._departures = 0

    def wait_for_requests(self, count: int, limit: float = 10.0) -> list[Request]:
        """Block until `count` model requests have come; raises `TimeoutError` after `limit` s."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, limit):
                raise TimeoutError(f"{len(self.requests)} of {count} requests after {limit} s")
            return self.requests

    def wait_for_departures(self, count: int, limit: float = 10.0) -> None:
        """Block until `count` clients have gone early; raises `TimeoutError` after `limit` s."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._departures >= count, limit):
                raise TimeoutError(f"{self._departures} of {count} departures after {limit} s")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the server and every open connection."""
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def record(
        self, method: str, path: str, kind: str, headers: dict[str, str], raw: bytes
    ) -> Request:
        """Keep a request and write it to the log."""
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {"unreadable": raw.decode("latin-1")}
        if not isinstance(body, dict):
            body = {"unreadable": body}
        reader = _READERS.get(kind)
        user, result = reader(body) if reader else ("", None)
        with self._changed:
            number = len(self._requests) + 1
            request = Request(number, method, path, kind, headers, body, raw, user, result)
            self._requests.append(request)
            self._write_log(request)
            self._changed.notify_all()
        return request

    def _write_log(self, request: Request) -> None:
        if self._log is None:
            return
        headers = {
            name: value[:12] + "…" if name in ("authorization", "x-api-key") else value
            for name, value in request.headers.items()
        }
        line = {
            "number": request.number,
            "method": request.method,
            "path": request.path,
            "kind": request.kind,
            "user": request.user,
            "tool_result": request.tool_result,
            "headers": headers,
            "body": request.body,
        }
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def depart(self) -> None:
        """Count a client that went away early."""
        with self._changed:
            self._departures += 1
            self._changed.notify_all()

    def treat(self, request: Request) -> tuple[Behaviour, Answer]:
        """How to treat a model request and what to say."""
        if request.kind == "messages" and asks_for_title(request.body, request.user):
            return Behaviour.ANSWER, Say("A fake title")
        with self._changed:
            treatment = self._next.popleft() if self._next else self.behaviour
        if isinstance(treatment, Fail):
            return Behaviour.ANSWER, treatment
        said = self.answer(request) if self.answer else None
        if said is None:
            said = answer_to(request)
        return treatment, Say(said) if isinstance(said, str) else said


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: FakeModel

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket)
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: object) -> None:
        assert isinstance(request, socket.socket)
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Shut every open connection, which wakes the threads that wait on them."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is usual here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr: requests are kept by the model."""

    def do_HEAD(self) -> None:
        self._note("probe", b"")
        self._send_json({})

    def do_GET(self) -> None:
        self._note("probe", b"")
        if not self.path.split("?")[0].endswith("/models"):
            return self._send_json({"ok": True})
        models = [{"id": "fake-model", "object": "model", "type": "model", "owned_by": "fake"}]
        return self._send_json({"object": "list", "data": models, "has_more": False})

    def do_POST(self) -> None:
        raw = self._read_body()
        path = self.path.split("?")[0].rstrip("/")
        kind = next((kind for ending, kind in _ENDINGS if path.endswith(ending)), "other")
        request = self._note(kind, raw)
        try:
            match kind:
                case "count-tokens":
                    self._send_json({"input_tokens": len(raw) // 4 + 1})
                case "other":
                    self._send_json({"ok": True}, 404)
                case _:
                    self._answer(request)
        except (BrokenPipeError, ConnectionResetError):
            self.server.model.depart()
            self.close_connection = True

    def _note(self, kind: str, raw: bytes) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        return self.server.model.record(self.command, self.path, kind, headers, raw)

    def _read_body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        raw = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw

    def _answer(self, request: Request) -> None:
        behaviour, answer = self.server.model.treat(request)
        if seconds := pause_before(request):
            self._wait(seconds)
        if isinstance(answer, Fail):
            body = error_body(request.kind, answer.status, answer.message)
            return self._send_json(body, answer.status, answer.headers)
        wire = wire_for(request.kind, request.body, answer, len(request.raw))
        match behaviour:
            case Behaviour.REFUSE:
                self.close_connection = True
            case Behaviour.STALL:
                self._wait(None)
            case Behaviour.HTML:
                page = b"<!DOCTYPE html><html><body>Welcome to the proxy</body></html>"
                self._send(page, "text/html; charset=utf-8")
            case Behaviour.REDIRECT:
                self._send(
                    b"", "text/plain", 307, (("location", self.server.model.url + "/elsewhere"),)
                )
            case _ if request.body.get("stream") and behaviour is not Behaviour.PLAIN:
                self._stream(behaviour, wire)
            case _:
                self._send_plain(behaviour, wire)

    def _send_plain(self, behaviour: Behaviour, wire: Wire) -> None:
        match behaviour:
            case Behaviour.MALFORMED:
                self._send(b'{"id": "x", "choices": [', "application/json")
            case Behaviour.EMPTY:
                self._send_json(wire.empty())
            case Behaviour.CUT | Behaviour.STALL_MIDWAY:
                whole = json.dumps(wire.plain()).encode()
                self._head("application/json", length=len(whole))
                self.wfile.write(whole[: len(whole) // 2])
                self._leave(behaviour)
            case _:
                self._send_json(wire.plain())

    def _stream(self, behaviour: Behaviour, wire: Wire) -> None:
        self._head("text/event-stream; charset=utf-8")
        match behaviour:
            case Behaviour.MALFORMED:
                self._write([b"data: {not json\n\n", frame("[DONE]")])
            case Behaviour.EMPTY:
                self._write(wire.empty_frames())
            case Behaviour.CUT | Behaviour.STALL_MIDWAY:
                frames = list(wire.frames())
                self._write(frames[: max(2, len(frames) // 2)])
                self._leave(behaviour)
            case Behaviour.NO_DONE:
                self._write(list(wire.frames())[:-1])
            case Behaviour.SLOW:
                self._write(_drip(wire.frames()), pause=0.002)
            case Behaviour.LINGER:
                self._write(wire.frames())
                self._wait(None)
            case _:
                self._write(wire.frames())

    def _leave(self, behaviour: Behaviour) -> None:
        self.wfile.flush()
        if behaviour is Behaviour.STALL_MIDWAY:
            self._wait(None)
        self.close_connection = True

    def _write(self, pieces: Iterable[bytes], pause: float = 0.0) -> None:
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()
            if pause:
                self._wait(pause)

    def _wait(self, seconds: float | None) -> None:
        """Wait (for ever with None); raises `ConnectionResetError` when the client goes away."""
        ready, _, _ = select.select([self.connection], [], [], seconds)
        if ready and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionResetError

    def _head(
        self,
        content_type: str,
        status: int = 200,
        headers: Iterable[tuple[str, str]] = (),
        length: int | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        if length is None:
            self.send_header("connection", "close")
            self.close_connection = True
        else:
            self.send_header("content-length", str(length))
        for name, value in chain(headers, (("request-id", "req_fake"),)):
            self.send_header(name, value)
        self.end_headers()

    def _send(
        self,
        body: bytes,
        content_type: str,
        status: int = 200,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._head(content_type, status, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_json(
        self, body: Json, status: int = 200, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._send(json.dumps(body).encode(), "application/json", status, headers)


def _drip(frames: Iterable[bytes]) -> Iterator[bytes]:
    whole = b"".join(frames)
    return (whole[start : start + _DRIP] for start in range(0, len(whole), _DRIP))
