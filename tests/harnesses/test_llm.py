"""The llm harness against a real server on loopback: what arrives, and every way to fail."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from isola_core.errors import ConfigError, HarnessError
from isola_core.ports import (
    FailureKind,
    Interrupts,
    Outgoing,
    QuotedContext,
    ReceiptState,
    Rewinds,
    SessionState,
    Streams,
    TurnEvent,
    TurnEventKind,
    TurnRef,
    TurnResult,
)
from isola_harnesses import llm
from isola_harnesses.conformance import Host, Subject
from isola_harnesses.llm import LlmHarness
from isola_harnesses.registry import HarnessServices
from tests.fake_model import Behaviour, FakeModel, Request
from tests.fake_model.reading import Json, objects
from tests.fake_model.script import Fail
from tests.fake_model.wire import frame

KEY = "sk-fake-0123456789abcdef"


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as running:
        yield running


class Bench:
    """One llm harness on one session."""

    harness: LlmHarness

    def __init__(self, url: str, folder: Path, env: Mapping[str, str], **more: object) -> None:
        settings = {"base_url": f"{url}/v1", "model": "fake-model", **more}

        def make(services: HarnessServices) -> LlmHarness:
            self.harness = llm.create(settings, services)
            return self.harness

        folder.mkdir(exist_ok=True)
        self.host = Host(Subject(create=make, env=env), folder)
        self.session = self.host.session("billing")
        self.events: list[TurnEvent] = []

    async def say(self, text: str, context: QuotedContext | None = None) -> TurnResult:
        message = self.host.message(text, context)
        result = await self.harness.dispatch_streaming(self.session, message, self.events.append)
        self.host.keep(self.session, message, result)
        return result


def bench(url: str, folder: Path, env: Mapping[str, str] | None = None, **more: object) -> Bench:
    return Bench(url, folder / "bench", env or {}, **more)


def sent(request: Request) -> list[tuple[object, object]]:
    return [(each["role"], each["content"]) for each in objects(request.body["messages"])]


def need_clean_failure(result: TurnResult, kind: FailureKind, *words: str) -> None:
    """A failed turn: no reply, nothing written, and a text with the host and what to do."""
    assert not result.ok
    assert result.reply == ""
    assert result.written is False
    assert result.failure is kind
    for word in ("127.0.0.1", *words):
        assert word in result.error


async def test_a_turn_streams_and_becomes_history(model: FakeModel, tmp_path: Path) -> None:
    one = bench(model.url, tmp_path, system="Be brief.")
    first = await one.say("roll back the invoice migration and keep the audit rows, please")
    await one.say("继续")
    assert first.ok
    assert first.turn_id.startswith("chatcmpl-")
    kinds = [event.kind for event in one.events]
    assert kinds[0] is TurnEventKind.RECEIVED
    assert kinds.count(TurnEventKind.TEXT) >= 2
    assert sent(model.requests[1]) == [
        ("system", "Be brief."),
        ("user", "roll back the invoice migration and keep the audit rows, please"),
        ("assistant", first.reply),
        ("user", "继续"),
    ]
    await one.harness.close()


async def test_context_is_quoted_before_the_message_and_is_not_history(
    model: FakeModel, tmp_path: Path
) -> None:
    one = bench(model.url, tmp_path)
    result = await one.say("go on", QuotedContext(("we use Postgres",), "Billing"))
    await one.say("next")
    assert result.reply == "REPLY: go on"
    (_, content) = sent(model.requests[0])[-1]
    assert "> - we use Postgres" in str(content)
    assert str(content).endswith("\n\ngo on")
    assert sent(model.requests[1])[0] == ("user", "go on")
    await one.harness.close()


@pytest.mark.parametrize(
    "text",
    ["x" * 65536, "词" * 22000 + "🙂👩‍👩‍👧" * 200, '\t "\\" \n\n  ', "!ls", "/help", "?"],
    ids=["64 KB", "wide", "quotes", "bang", "slash", "question"],
)
async def test_a_text_is_sent_to_the_byte(model: FakeModel, tmp_path: Path, text: str) -> None:
    one = bench(model.url, tmp_path, max_context_tokens=100_000)
    result = await one.say(text)
    assert sent(model.requests[0]) == [("user", text)]
    assert result.reply == f"REPLY: {text}"
    await one.harness.close()


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        (Behaviour.REFUSE, FailureKind.UNREACHABLE, "closed the connection"),
        (Behaviour.CUT, FailureKind.UNREACHABLE, "in the middle of its answer"),
        (Behaviour.STALL, FailureKind.TIMED_OUT, "silent for 0.6 s"),
        (Behaviour.STALL_MIDWAY, FailureKind.TIMED_OUT, "silent for 0.6 s"),
        (Behaviour.MALFORMED, FailureKind.ERROR, "not a chat completion"),
        (Behaviour.EMPTY, FailureKind.ERROR, "answer is empty"),
        (Behaviour.HTML, FailureKind.ERROR, "/v1"),
        (Behaviour.REDIRECT, FailureKind.ERROR, "Redirects are not followed"),
        (Fail(401), FailureKind.AUTH_EXPIRED, "api_key_env"),
        (Fail(429, "slow down", (("retry-after", "7"),)), FailureKind.RATE_LIMITED, "in 7 s"),
        (Fail(500, "oh\x1b[2J no"), FailureKind.ERROR, "answered 500: oh[2J no"),
        (Fail(503), FailureKind.UNREACHABLE, "answered 503"),
        (Fail(404, "model 'x' not found"), FailureKind.ERROR, "model 'x' not found"),
    ],
    ids=str,
)
async def test_a_failure_is_clear_and_leaves_no_trace(
    model: FakeModel, tmp_path: Path, behaviour: Behaviour | Fail, kind: FailureKind, words: str
) -> None:
    one = bench(model.url, tmp_path, idle_timeout_s=0.6)
    await one.say("before")
    model.next(behaviour)
    failed = await one.say("a message long enough that half of its answer is a real fragment of it")
    need_clean_failure(failed, kind, words)
    after = await one.say("after")
    assert after.reply == "REPLY: after"
    assert [text for _, text in sent(model.requests[-1])] == ["before", "REPLY: before", "after"]
    await one.harness.close()


async def test_a_plain_answer_that_is_cut_is_a_failure(model: FakeModel, tmp_path: Path) -> None:
    one = bench(model.url, tmp_path)

    def plain_only(request: Request) -> None:
        request.body["stream"] = False

    model.answer = plain_only
    model.next(Behaviour.CUT, Behaviour.MALFORMED, Behaviour.EMPTY)
    need_clean_failure(await one.say("hello"), FailureKind.UNREACHABLE, "in the middle")
    need_clean_failure(await one.say("hello"), FailureKind.ERROR, "not a chat completion")
    need_clean_failure(await one.say("hello"), FailureKind.ERROR, "empty")
    assert (await one.say("hello")).reply == "REPLY: hello"
    await one.harness.close()


@pytest.mark.parametrize("behaviour", [Behaviour.NO_DONE, Behaviour.PLAIN, Behaviour.LINGER])
async def test_a_whole_answer_is_taken_however_it_ends(
    model: FakeModel, tmp_path: Path, behaviour: Behaviour
) -> None:
    one = bench(model.url, tmp_path, timeout_s=5)
    model.behaviour = behaviour
    assert (await one.say("你好 " * 50)).reply == "REPLY: " + "你好 " * 50
    await one.harness.close()


async def test_a_slow_drip_of_split_characters_is_put_together(
    model: FakeModel, tmp_path: Path
) -> None:
    one = bench(model.url, tmp_path)
    model.behaviour = Behaviour.SLOW
    result = await one.say("发票🙂")
    assert result.reply == "REPLY: 发票🙂"
    told = [event.text for event in one.events if event.kind is TurnEventKind.TEXT]
    assert "".join(told) == result.reply
    await one.harness.close()


async def test_a_drip_without_end_runs_into_the_total_time(
    model: FakeModel, tmp_path: Path
) -> None:
    one = bench(model.url, tmp_path, timeout_s=0.3)
    model.behaviour = Behaviour.SLOW
    failed = await one.say("[[lines:5000]]")
    need_clean_failure(failed, FailureKind.TIMED_OUT, "not done after 0.3 s")
    await one.harness.close()


async def test_nobody_listening_is_unreachable(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one = bench(f"http://127.0.0.1:{port}", tmp_path)
    failed = await one.say("hello")
    need_clean_failure(failed, FailureKind.UNREACHABLE, f"127.0.0.1:{port}", "Is the model server")
    await one.harness.close()


@pytest.mark.parametrize(
    ("delta", "finish", "words"),
    [
        ({"tool_calls": [{"index": 0}]}, "tool_calls", "asked for a tool"),
        ({"reasoning_content": "hm"}, "length", "thought and then said nothing"),
        ({"content": "half of"}, "content_filter", "content filter"),
        ({"content": " \n"}, "stop", "empty"),
    ],
)
async def test_an_answer_without_words_says_why(
    tmp_path: Path, delta: Json, finish: str, words: str
) -> None:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    async with Script(frame({"choices": [choice]}) + frame("[DONE]")) as url:
        one = bench(url, tmp_path)
        need_clean_failure(await one.say("hello"), FailureKind.ERROR, words)
        await one.harness.close()


async def test_an_error_inside_the_stream_is_a_failure(tmp_path: Path) -> None:
    first = frame({"choices": [{"index": 0, "delta": {"content": "half"}}]})
    error: Json = {"error": {"message": "overloaded", "code": 429}}
    async with Script(first + frame(error)) as url:
        one = bench(url, tmp_path)
        need_clean_failure(await one.say("hello"), FailureKind.RATE_LIMITED, "overloaded")
        await one.harness.close()


async def test_escapes_in_a_reply_never_come_out(tmp_path: Path) -> None:
    pieces = ["a\x1b", "]52;c;eA==\x07b\r", "\nc\ud83d", "\ude42\x9b"]
    chunks = [{"choices": [{"index": 0, "delta": {"content": each}}]} for each in pieces]
    body = b"".join(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in chunks)
    async with Script(body + frame("[DONE]")) as url:
        one = bench(url, tmp_path)
        result = await one.say("hello")
        assert result.reply == "a]52;c;eA==b\nc🙂"
        assert "".join(event.text for event in one.events[1:]) == result.reply
        await one.harness.close()


async def test_an_interrupt_closes_the_connection(model: FakeModel, tmp_path: Path) -> None:
    one = bench(model.url, tmp_path)
    model.behaviour = Behaviour.STALL_MIDWAY
    task = asyncio.create_task(one.say("hello"))
    await asyncio.to_thread(model.wait_for_requests, 1)
    assert (await one.harness.ensure_session(one.session)).state is SessionState.WORKING
    with pytest.raises(HarnessError):
        await one.say("a second at the same time")
    await asyncio.gather(one.harness.interrupt(one.session), one.harness.interrupt(one.session))
    result = await asyncio.wait_for(task, 5)
    assert (result.ok, result.reply, result.failure) == (False, "", FailureKind.CANCELLED)
    assert result.written is False
    await asyncio.to_thread(model.wait_for_departures, 1)
    assert (await one.harness.ensure_session(one.session)).state is SessionState.IDLE
    await one.harness.close()


async def test_a_cancelled_task_closes_the_connection(model: FakeModel, tmp_path: Path) -> None:
    one = bench(model.url, tmp_path)
    model.behaviour = Behaviour.STALL
    task = asyncio.create_task(one.say("hello"))
    await asyncio.to_thread(model.wait_for_requests, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(model.wait_for_departures, 1)
    assert await one.host.history.turns(one.session) == ()
    await one.harness.close()


async def test_the_key_comes_from_the_environment_and_is_in_no_error(
    model: FakeModel, tmp_path: Path
) -> None:
    one = bench(model.url, tmp_path, {"FAKE_KEY": KEY}, api_key_env="FAKE_KEY")
    assert (await one.say("hello")).ok
    assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"
    model.next(Fail(401, f"Incorrect API key provided: {KEY}"))
    failed = await one.say("hello")
    need_clean_failure(failed, FailureKind.AUTH_EXPIRED, "[key]")
    assert KEY not in repr(failed)
    await one.harness.close()


@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "schlüssel"])
async def test_a_missing_or_broken_key_is_said_before_anything_is_sent(
    model: FakeModel, tmp_path: Path, value: str
) -> None:
    one = bench(model.url, tmp_path, {"FAKE_KEY": value}, api_key_env="FAKE_KEY")
    status = await one.harness.ensure_session(one.session)
    assert status.state is SessionState.AUTH_EXPIRED
    failed = await one.say("hello")
    assert failed.failure is FailureKind.AUTH_EXPIRED
    assert "FAKE_KEY" in failed.error
    assert not value or value not in failed.error
    assert model.requests == []
    await one.harness.close()


async def test_no_proxy_sees_a_request_to_loopback(
    model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    one = bench(model.url, tmp_path)
    assert (await one.say("hello")).ok
    await one.harness.close()


async def test_a_rewound_turn_is_in_no_later_request(model: FakeModel, tmp_path: Path) -> None:
    one = bench(model.url, tmp_path)
    for text in ("one", "two FOREIGN", "three"):
        await one.say(text)
    wrong = (await one.host.history.turns(one.session))[1]
    one.host.history.excise(wrong.delivery)
    done = await one.harness.rewind(one.session, TurnRef(wrong.delivery, "", wrong.sent))
    assert done.replaced is False
    await one.say("four")
    assert b"FOREIGN" not in model.requests[-1].raw
    assert b"three" in model.requests[-1].raw
    await one.harness.close()


async def test_a_receipt_is_what_the_history_holds(model: FakeModel, tmp_path: Path) -> None:
    one = bench(model.url, tmp_path)
    await one.say("one")
    (turn,) = await one.host.history.turns(one.session)
    known = await one.harness.confirm(one.session, Outgoing(turn.delivery, "m", "one"))
    assert (known.state, known.reply) == (ReceiptState.ANSWERED, "REPLY: one")
    never = await one.harness.confirm(one.session, Outgoing("d-other", "m", "one"))
    assert never.state is ReceiptState.ABSENT
    await one.harness.close()


def test_the_capabilities_are_told(tmp_path: Path) -> None:
    harness = bench("http://127.0.0.1:1", tmp_path).harness
    assert isinstance(harness, Streams)
    assert isinstance(harness, Interrupts)
    assert isinstance(harness, Rewinds)


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        ("127.0.0.1:11434/v1", "an http or https address"),
        ("ftp://host/v1", "an http or https address"),
        ("http://", "an http or https address"),
        ("http://host:port/v1", "an http or https address"),
        ("http://user:pass@host/v1", "no name or password"),
        ("http://host/v1?key=x", "nothing after"),
    ],
)
def test_a_base_url_that_cannot_be_meant_is_refused(
    tmp_path: Path, base_url: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        Bench("", tmp_path / "bench", {}, base_url=base_url)
    assert "pass" not in str(refused.value).replace("password", "")


async def test_a_message_that_does_not_fit_is_not_sent(model: FakeModel, tmp_path: Path) -> None:
    one = bench(model.url, tmp_path, max_context_tokens=256)
    failed = await one.say("w" * 2000)
    assert "max_context_tokens is 256" in failed.error
    assert failed.written is False
    assert model.requests == []
    await one.harness.close()


class Script:
    """A server that answers every request with the same stream."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        writer.write(head + self._body)
        await writer.drain()
        writer.close()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()


def test_a_reset_is_a_new_generation_of_the_same_session(tmp_path: Path) -> None:
    one = bench("http://127.0.0.1:1", tmp_path)
    fresh = asyncio.run(one.harness.reset_session(one.session))
    assert (fresh.id, fresh.generation) == (one.session.id, 1)
