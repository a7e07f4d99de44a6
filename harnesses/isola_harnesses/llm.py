"""Any OpenAI-compatible endpoint (ollama, DeepSeek, vLLM, llama.cpp) as a backend.

The endpoint keeps nothing, so the session's history is the store's: the finished turns that were
not taken back. A turn that failed or was cancelled leaves no trace in it, and forgetting a turn is
exact. The API key is read from the environment only and is in no error text.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import httpx
import msgspec

from isola_core.errors import HarnessError
from isola_core.ports import (
    FailureKind,
    Outgoing,
    Receipt,
    Rewound,
    SessionRef,
    SessionState,
    SessionStatus,
    Sink,
    TurnEvent,
    TurnEventKind,
    TurnRef,
    TurnResult,
    next_generation,
)
from isola_core.secrets import mask
from isola_core.text import safe_label
from isola_harnesses import own_history
from isola_harnesses.llm_prompt import Prompt, TooLong, build_prompt
from isola_harnesses.llm_stream import Completion, EndpointFailure, SseDecoder, refused
from isola_harnesses.registry import HarnessServices
from isola_harnesses.settings import read_settings

_CONNECT_S: Final = 15.0
_LINGER_S: Final = 1.0
"""How long a complete answer may keep its connection open before we leave."""
_MAX_PLAIN: Final = 16 * 2**20
_MAX_ERROR_BODY: Final = 64 * 2**10

_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_NotEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class LlmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `harness:` section of type `llm`."""

    base_url: _NotEmpty
    """Up to and without `/chat/completions`, such as `http://127.0.0.1:11434/v1`."""
    model: _NotEmpty
    api_key_env: _NotEmpty | None = None
    """The environment variable that holds the key; None sends none."""
    max_context_tokens: Annotated[int, msgspec.Meta(ge=256)] = 16_000
    """Bound of a request by our estimate: system prompt, history, context and message."""
    timeout_s: _Seconds = 300.0
    """The whole turn, seconds."""
    idle_timeout_s: _Seconds = 120.0
    """Between two signs of life, seconds; a local model may load for a minute first."""
    system: str = ""

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.base_url)
        except (httpx.InvalidURL, ValueError):
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(
                "base_url: an http or https address, such as http://127.0.0.1:11434/v1"
            )
        if url.userinfo:
            raise ValueError("base_url: no name or password in it; use api_key_env")
        if url.query or url.fragment:
            raise ValueError("base_url: nothing after ? or #")


def create(settings: Mapping[str, object], services: HarnessServices) -> LlmHarness:
    """The entry point; raises `ConfigError` for wrong settings."""
    return LlmHarness(read_settings(LlmSettings, settings, "the llm harness"), services)


@dataclass(slots=True)
class _Turn:
    """A running turn; rescheduling its scope to now ends it wherever it waits."""

    scope: asyncio.Timeout
    interrupted: bool = False

    def interrupt(self) -> None:
        if not self.interrupted and not self.scope.expired():
            self.interrupted = True
            self.scope.reschedule(asyncio.get_running_loop().time())


class LlmHarness:
    """Talks to one endpoint; implements Streams, Interrupts, Rewinds, Rebuilds and Confirms."""

    rebuilds_history = True

    def __init__(self, settings: LlmSettings, services: HarnessServices) -> None:
        self._settings = settings
        self._services = services
        url = httpx.URL(settings.base_url)
        self._where = f"{url.host}:{url.port}" if url.port else url.host
        self._url = settings.base_url.rstrip("/") + "/chat/completions"
        self._loopback = _is_loopback(url.host)
        self._client: httpx.AsyncClient | None = None
        self._turns: dict[str, _Turn] = {}
        self._closed = False

    async def ensure_session(self, session: SessionRef) -> SessionStatus:
        """Nothing to prepare: the session is its history. A missing key is said here already."""
        if problem := self._key_problem():
            return SessionStatus(session, SessionState.AUTH_EXPIRED, problem)
        working = session.id in self._turns
        state = SessionState.WORKING if working else SessionState.IDLE
        return SessionStatus(session, state, f"{self._settings.model} at {self._where}")

    async def dispatch(self, session: SessionRef, message: Outgoing) -> TurnResult:
        """One request; a failed one has `written` False, for the endpoint keeps nothing of it."""
        return await self.dispatch_streaming(session, message, lambda _: None)

    async def dispatch_streaming(
        self, session: SessionRef, message: Outgoing, sink: Sink
    ) -> TurnResult:
        """`dispatch`, with the reply's fragments as they come; RECEIVED is the endpoint's 200."""
        if self._closed:
            raise HarnessError("The llm harness is closed.")
        if session.id in self._turns:
            raise HarnessError(f"Session {session.key} has a running turn; one at a time.")
        scope = asyncio.timeout(self._settings.timeout_s)
        turn = _Turn(scope)
        self._turns[session.id] = turn
        try:
            async with scope:
                return await self._turn(session, message, sink)
        except TimeoutError:
            if turn.interrupted:
                return _failed(FailureKind.CANCELLED, "The turn was stopped; nothing was kept.")
            return self._failure(
                EndpointFailure(
                    f"it was not done after {self._settings.timeout_s:g} s",
                    "Send the message again, or raise timeout_s.",
                    FailureKind.TIMED_OUT,
                )
            )
        except EndpointFailure as failure:
            return self._failure(failure)
        except httpx.HTTPError as error:
            return self._failure(_unreachable(error, self._settings.idle_timeout_s))
        finally:
            del self._turns[session.id]

    async def reset_session(self, session: SessionRef) -> SessionRef:
        """A new generation: its history is empty."""
        return next_generation(session)

    async def interrupt(self, session: SessionRef) -> None:
        """Close the running turn's connection; it ends as cancelled."""
        if turn := self._turns.get(session.id):
            turn.interrupt()

    async def rewind(self, session: SessionRef, turn: TurnRef) -> Rewound:
        """Nothing to do but to leave the turn out: later requests are built from the history."""
        return Rewound(session, replaced=False, note="The turn is out of the session's history.")

    async def confirm(self, session: SessionRef, message: Outgoing) -> Receipt:
        """By the history, which is all that this session is."""
        return await own_history.receipt(self._services.history, session, message)

    async def close(self) -> None:
        """End running turns as cancelled and close the connections. May be called again."""
        self._closed = True
        for turn in list(self._turns.values()):
            turn.interrupt()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _turn(self, session: SessionRef, message: Outgoing, sink: Sink) -> TurnResult:
        if problem := self._key_problem():
            return _failed(FailureKind.AUTH_EXPIRED, problem)
        history = await self._services.history.turns(session)
        settings = self._settings
        try:
            prompt = build_prompt(settings.system, history, message, settings.max_context_tokens)
        except TooLong as error:
            return _failed(
                FailureKind.ERROR,
                f"The message is too long: about {error.needed} tokens with the system prompt, and "
                f"max_context_tokens is {error.limit}. Nothing was sent. Shorten it or raise the "
                f"limit.",
            )
        completion = await self._ask(prompt, sink)
        return TurnResult(
            ok=True,
            reply=completion.reply.whole,
            turn_id=completion.id,
            meta=self._meta(completion, prompt),
        )

    async def _ask(self, prompt: Prompt, sink: Sink) -> Completion:
        body = {"model": self._settings.model, "messages": prompt.messages, "stream": True}
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        request = self._open_client().stream(
            "POST", self._url, content=content, headers=self._headers()
        )
        async with request as response:
            if response.status_code != 200:
                said = await _first_bytes(response, _MAX_ERROR_BODY)
                raise refused(response.status_code, said, response.headers.get("retry-after", ""))
            sink(TurnEvent(TurnEventKind.RECEIVED, f"{self._where} answered 200"))
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            completion = Completion()
            match kind:
                case "application/json":
                    await self._read_plain(response, completion, sink)
                case "text/html":
                    raise EndpointFailure(
                        "it answered with a web page", "Check base_url (it usually ends in /v1)."
                    )
                case _:
                    await self._read_stream(response, completion, sink)
            _tell(sink, completion.end())
            return completion

    async def _read_stream(
        self, response: httpx.Response, completion: Completion, sink: Sink
    ) -> None:
        """Until the answer is complete or the stream ends."""
        decoder = SseDecoder()
        chunks = response.aiter_bytes()
        while True:
            try:
                async with asyncio.timeout(_LINGER_S if completion.finish_reason else None):
                    chunk = await anext(chunks, None)
            except (TimeoutError, httpx.HTTPError):
                if completion.finish_reason:
                    return
                raise
            for data in decoder.feed(chunk) if chunk is not None else decoder.finish():
                _tell(sink, completion.take(data))
                if completion.done:
                    return
            if chunk is None:
                return

    async def _read_plain(
        self, response: httpx.Response, completion: Completion, sink: Sink
    ) -> None:
        """An endpoint that does not stream although it was asked to."""
        whole = await _first_bytes(response, _MAX_PLAIN)
        _tell(sink, completion.take(whole.decode("utf-8", "replace")))
        completion.done = True

    def _open_client(self) -> httpx.AsyncClient:
        """The one client, made late because loading certificates takes a tenth of a second."""
        if self._client is None:
            idle = self._settings.idle_timeout_s
            self._client = httpx.AsyncClient(
                timeout=httpx.Timeout(idle, connect=min(_CONNECT_S, idle)),
                follow_redirects=False,
                trust_env=not self._loopback,
            )
        return self._client

    def _headers(self) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "isola",
        }
        if key := self._key():
            headers["authorization"] = f"Bearer {key}"
        return headers

    def _key(self) -> str:
        name = self._settings.api_key_env
        return self._services.env.get(name, "").strip() if name else ""

    def _key_problem(self) -> str:
        """Why the key cannot be used, or ""."""
        name = self._settings.api_key_env
        if not name:
            return ""
        key = self._key()
        if not key:
            return f"{self._where} needs a key: set the environment variable {name}."
        if not key.isascii() or not key.isprintable() or " " in key:
            return f"The key in the environment variable {name} has characters that no key has."
        return ""

    def _failure(self, failure: EndpointFailure) -> TurnResult:
        text = f"{self._where}: {failure.reason}. {failure.advice}".strip()
        if key := self._key():
            text = text.replace(key, "[key]")
        return _failed(failure.kind, mask(text), {"endpoint": self._where, **failure.facts})

    def _meta(self, completion: Completion, prompt: Prompt) -> dict[str, object]:
        return {
            "endpoint": self._where,
            "model": completion.model or self._settings.model,
            "finish_reason": completion.finish_reason,
            "usage": completion.usage,
            "estimated_tokens": prompt.tokens,
            "history_turns": prompt.turns,
            "history_turns_left_out": prompt.turns_left_out,
            "memories_left_out": prompt.memories_left_out,
        }


def _tell(sink: Sink, text: str) -> None:
    if text:
        sink(TurnEvent(TurnEventKind.TEXT, text))


def _failed(kind: FailureKind, error: str, meta: Mapping[str, object] | None = None) -> TurnResult:
    """A turn of which nothing is in the session."""
    return TurnResult(ok=False, error=error, failure=kind, written=False, meta=meta or {})


def _unreachable(error: httpx.HTTPError, idle: float) -> EndpointFailure:
    """What went wrong on the way, in words; never the request, which holds the key."""
    again = "Send the message again."
    match error:
        case httpx.ConnectTimeout():
            reason = "it does not take the connection"
            return EndpointFailure(reason, f"Is it running? {again}", FailureKind.TIMED_OUT)
        case httpx.TimeoutException():
            reason = f"it was silent for {idle:g} s"
            advice = f"{again[:-1]}, or raise idle_timeout_s."
            return EndpointFailure(reason, advice, FailureKind.TIMED_OUT)
        case httpx.ConnectError():
            reason = f"it cannot be reached ({safe_label(str(error), 120)})"
            advice = "Is the model server running, and is base_url right?"
            return EndpointFailure(reason, advice, FailureKind.UNREACHABLE)
        case httpx.RemoteProtocolError() | httpx.ReadError() | httpx.WriteError():
            reason = "it closed the connection in the middle of its answer"
            advice = f"Nothing of it was kept. {again}"
            return EndpointFailure(reason, advice, FailureKind.UNREACHABLE)
        case httpx.DecodingError():
            return EndpointFailure("its answer is compressed in a way that is broken", again)
        case _:
            reason = f"the request failed ({type(error).__name__})"
            return EndpointFailure(reason, "Check base_url.", FailureKind.UNREACHABLE)


async def _first_bytes(response: httpx.Response, limit: int) -> bytes:
    """A body's first `limit` bytes."""
    whole = bytearray()
    async for chunk in response.aiter_bytes():
        whole += chunk
        if len(whole) >= limit:
            break
    return bytes(whole[:limit])


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine: then no proxy of the environment may see the request."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
