"""The fake model speaks each protocol as the real ones do, and misbehaves on demand."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fake_model import Behaviour, FakeModel, Request
from tests.fake_model.reading import Json, without_noise
from tests.fake_model.script import Fail

ROOT = Path(__file__).parents[2]
TOOL = '[[tool:ns/look {"path": "a/b"}]]'


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as running:
        yield running


def chat(model: FakeModel, text: str, stream: bool = False) -> httpx.Response:
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}
    return httpx.post(f"{model.url}/v1/chat/completions", json=body, trust_env=False)


def messages(
    model: FakeModel, *content: Json, stream: bool = False, **more: object
) -> httpx.Response:
    body = {"model": "m", "stream": stream, "tools": [{"name": "look"}], **more}
    body["messages"] = [{"role": "user", "content": list(content)}]
    return httpx.post(f"{model.url}/v1/messages?beta=true", json=body, trust_env=False)


def responses(model: FakeModel, text: str, stream: bool = False) -> httpx.Response:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    body = {"model": "m", "stream": stream, "input": [item]}
    return httpx.post(f"{model.url}/v1/responses", json=body, trust_env=False)


def events(response: httpx.Response) -> list[Json]:
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


def test_chat_is_answered_plainly(model: FakeModel) -> None:
    choice = chat(model, "hello").json()["choices"][0]
    assert choice["message"]["content"] == "REPLY: hello"
    assert choice["finish_reason"] == "stop"


def test_chat_is_streamed(model: FakeModel) -> None:
    response = chat(model, "好" * 100, stream=True)
    choices = [event["choices"][0] for event in events(response)]  # type: ignore[index]
    assert "".join(each["delta"].get("content", "") for each in choices) == "REPLY: " + "好" * 100
    assert choices[-1]["finish_reason"] == "stop"
    assert response.text.endswith("data: [DONE]\n\n")


def test_chat_calls_a_tool_and_says_its_result(model: FakeModel) -> None:
    message = chat(model, TOOL).json()["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"path": "a/b"}'}
    body = {
        "messages": [
            {"role": "user", "content": TOOL},
            message,
            {"role": "tool", "tool_call_id": "x", "content": "found it"},
        ]
    }
    answer = httpx.post(f"{model.url}/v1/chat/completions", json=body, trust_env=False).json()
    assert answer["choices"][0]["message"]["content"] == "TOOL-SAID: found it"


def test_messages_are_streamed_as_claude_code_reads_them(model: FakeModel) -> None:
    text: Json = {"type": "text", "text": "hello"}
    noise: Json = {"type": "text", "text": "<system-reminder>ignore me</system-reminder>"}
    found = events(messages(model, noise, text, stream=True))
    assert [event["type"] for event in found] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert found[2]["delta"] == {"type": "text_delta", "text": "REPLY: hello"}
    assert found[4]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert "usage" in found[4]


def test_messages_call_a_tool_and_say_its_result(model: FakeModel) -> None:
    found = events(messages(model, {"type": "text", "text": TOOL}, stream=True))
    assert found[1]["content_block"]["type"] == "tool_use"  # type: ignore[index]
    assert found[2]["delta"] == {"type": "input_json_delta", "partial_json": '{"path": "a/b"}'}
    assert found[4]["delta"]["stop_reason"] == "tool_use"  # type: ignore[index]
    result: Json = {"type": "tool_result", "tool_use_id": "x", "content": "found it"}
    content = messages(model, result).json()["content"]
    assert content == [{"type": "text", "text": "TOOL-SAID: found it"}]


def test_a_title_request_takes_no_part_in_the_script(model: FakeModel) -> None:
    model.next(Fail(500))
    asked: Json = {"type": "text", "text": "<session>[[error:400]]</session> Write the title"}
    assert messages(model, asked, tools=[]).json()["content"][0]["text"] == "A fake title"
    assert messages(model, {"type": "text", "text": "hello"}).status_code == 500


def test_responses_are_streamed(model: FakeModel) -> None:
    found = events(responses(model, "hello", stream=True))
    assert found[0]["type"] == "response.created"
    assert found[-1]["type"] == "response.completed"
    pieces = [str(each["delta"]) for each in found if each["type"] == "response.output_text.delta"]
    assert "".join(pieces) == "REPLY: hello"
    call = responses(model, TOOL).json()["output"][0]
    assert (call["type"], call["namespace"], call["name"]) == ("function_call", "ns", "look")


def test_a_probe_is_answered_and_is_not_a_model_request(model: FakeModel) -> None:
    assert httpx.head(model.url, trust_env=False).status_code == 200
    assert httpx.get(f"{model.url}/v1/models", trust_env=False).json()["data"][0]["id"]
    assert [each.method for each in model.seen] == ["HEAD", "GET"]
    assert model.requests == []


def test_magic_gives_lines_and_errors(model: FakeModel) -> None:
    assert chat(model, "[[lines:3]]").json()["choices"][0]["message"]["content"] == (
        "line 1\nline 2\nline 3"
    )
    assert chat(model, "[[error:429]]").status_code == 429
    assert chat(model, "[[sleep:0.01]]").status_code == 200


def test_a_function_answers_like_a_judge(model: FakeModel) -> None:
    def judge(request: Request) -> str:
        return json.dumps({"project": "billing", "asked": request.user})

    model.answer = judge
    content = chat(model, "which?").json()["choices"][0]["message"]["content"]
    assert json.loads(content) == {"project": "billing", "asked": "which?"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("behaviour", [Behaviour.REFUSE, Behaviour.CUT])
def test_a_broken_connection_is_broken(
    model: FakeModel, behaviour: Behaviour, stream: bool
) -> None:
    model.behaviour = behaviour
    if stream and behaviour is Behaviour.CUT:
        assert "[DONE]" not in chat(model, "hello", stream).text
        return
    with pytest.raises(httpx.RemoteProtocolError):
        chat(model, "hello", stream)


def test_a_client_that_leaves_is_noticed(model: FakeModel) -> None:
    model.behaviour = Behaviour.STALL
    body = {"messages": [{"role": "user", "content": "hello"}]}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{model.url}/v1/chat/completions", json=body, timeout=0.05, trust_env=False)
    model.wait_for_departures(1)


@pytest.mark.parametrize(
    "noisy",
    [
        "<system-reminder>a\nb</system-reminder>\nhello",
        "[Mon 2026-11-30 20:16 UTC] hello\n\nRuntime: agent=main",
        "hello<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>x<<<END_OPENCLAW_INTERNAL_CONTEXT>>>",
        '<isola-context id="ab12">\n> noted\n</isola-context id="ab12">\n\nhello',
    ],
)
def test_noise_of_agents_is_taken_out(noisy: str) -> None:
    assert without_noise(noisy) == "hello"


def test_plain_text_is_kept_to_the_byte() -> None:
    assert without_noise(" \thello \n\n") == " \thello \n\n"


@pytest.mark.parametrize("end", ["eof", "sigterm"])
def test_the_program_tells_its_address_and_ends(tmp_path: Path, end: str) -> None:
    log = tmp_path / "log.jsonl"
    table = tmp_path / "replies.json"
    table.write_text('{"which": "billing"}')
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fake_model", "--log", log, "--replies", table],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        url = json.loads(program.stdout.readline())["url"]
        body = {"messages": [{"role": "user", "content": "which one?"}]}
        headers = {"authorization": "Bearer sk-fake-0123456789"}
        answer = httpx.post(
            f"{url}/v1/chat/completions", json=body, headers=headers, trust_env=False
        )
        assert answer.json()["choices"][0]["message"]["content"] == "billing"
        if end == "eof":
            program.stdin.close()
        else:
            program.send_signal(signal.SIGTERM)
        assert program.wait(10) == 0
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["user"] == "which one?"
    assert "0123456789" not in line
