"""The three protocols' answers as bytes: a plain body, or the frames of an event stream."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

from tests.fake_model.reading import Json
from tests.fake_model.script import CallTool, Say

_PIECE = 40
"""Characters in one fragment of a streamed text."""


def frame(data: Json | str, event: str = "") -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:20]


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


def error_body(kind: str, status: int, message: str) -> Json:
    """An error in the protocol's own form."""
    text = message or f"fake error {status}"
    if kind == "messages":
        name = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "api_error")
        return {"type": "error", "error": {"type": name, "message": text}}
    return {"error": {"message": text, "type": "server_error", "code": None}}


class ChatWire:
    """OpenAI chat completions."""

    def __init__(self, body: Json, answer: Say | CallTool, size: int) -> None:
        self._usage: Json = {
            "prompt_tokens": size // 4 + 1,
            "completion_tokens": 7,
            "total_tokens": size // 4 + 8,
        }
        self._base: Json = {
            "id": _id("chatcmpl-"),
            "created": 0,
            "model": body.get("model", "fake-model"),
        }
        options = body.get("stream_options")
        self._wants_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        self._answer = answer

    def _call(self, answer: CallTool) -> Json:
        function = {"name": answer.name, "arguments": json.dumps(answer.arguments)}
        return {"id": _id("call_"), "type": "function", "function": function}

    def plain(self) -> Json:
        match self._answer:
            case Say(text):
                message: Json = {"role": "assistant", "content": text}
                finish = "stop"
            case CallTool() as call:
                message = {"role": "assistant", "content": None, "tool_calls": [self._call(call)]}
                finish = "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {
            **self._base,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage,
        }

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return frame({**self._base, "object": "chat.completion.chunk", "choices": [choice]})

    def frames(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})
        match self._answer:
            case Say(text):
                for piece in _pieces(text):
                    yield self._chunk({"content": piece})
                finish = "stop"
            case CallTool() as call:
                yield self._chunk({"tool_calls": [{"index": 0, **self._call(call)}]})
                finish = "tool_calls"
        yield self._chunk({}, finish)
        if self._wants_usage:
            base = {**self._base, "object": "chat.completion.chunk"}
            yield frame({**base, "choices": [], "usage": self._usage})
        yield frame("[DONE]")

    def empty(self) -> Json:
        return {**self._base, "object": "chat.completion", "choices": []}

    def empty_frames(self) -> Iterator[bytes]:
        yield frame({**self._base, "object": "chat.completion.chunk", "choices": []})
        yield frame("[DONE]")


class MessagesWire:
    """Anthropic Messages."""

    def __init__(self, body: Json, answer: Say | CallTool, size: int) -> None:
        self._usage: Json = {
            "input_tokens": size // 4 + 1,
            "output_tokens": 7,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        self._message: Json = {
            "id": _id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "fake-model"),
            "stop_sequence": None,
        }
        match answer:
            case Say(text):
                self._block: Json = {"type": "text", "text": text}
                self._stop = "end_turn"
            case CallTool(name, arguments):
                self._block = {
                    "type": "tool_use",
                    "id": _id("toolu_"),
                    "name": name,
                    "input": arguments,
                }
                self._stop = "tool_use"
        self._answer = answer

    def plain(self) -> Json:
        return {
            **self._message,
            "content": [self._block],
            "stop_reason": self._stop,
            "usage": self._usage,
        }

    def _start(self) -> bytes:
        usage = {**self._usage, "output_tokens": 1}
        message = {**self._message, "content": [], "stop_reason": None, "usage": usage}
        return frame({"type": "message_start", "message": message}, "message_start")

    def _delta(self, delta: Json) -> bytes:
        body: Json = {"type": "content_block_delta", "index": 0, "delta": delta}
        return frame(body, "content_block_delta")

    def _end(self, stop: str) -> Iterator[bytes]:
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield frame(
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}},
            "message_delta",
        )
        yield frame({"type": "message_stop"}, "message_stop")

    def frames(self) -> Iterator[bytes]:
        yield self._start()
        empty: Json = {"text": ""} if isinstance(self._answer, Say) else {"input": {}}
        yield frame(
            {"type": "content_block_start", "index": 0, "content_block": {**self._block, **empty}},
            "content_block_start",
        )
        match self._answer:
            case Say(text):
                for piece in _pieces(text):
                    yield self._delta({"type": "text_delta", "text": piece})
            case CallTool(_, arguments):
                whole = json.dumps(arguments)
                yield self._delta({"type": "input_json_delta", "partial_json": whole})
        yield frame({"type": "content_block_stop", "index": 0}, "content_block_stop")
        yield from self._end(self._stop)

    def empty(self) -> Json:
        return {**self._message, "content": [], "stop_reason": "end_turn", "usage": self._usage}

    def empty_frames(self) -> Iterator[bytes]:
        yield self._start()
        yield from self._end("end_turn")


class ResponsesWire:
    """OpenAI Responses, as Codex uses it."""

    def __init__(self, body: Json, answer: Say | CallTool, size: int) -> None:
        match answer:
            case Say(text):
                part = {"type": "output_text", "text": text, "annotations": []}
                self._item: Json = {
                    "type": "message",
                    "id": _id("msg_"),
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            case CallTool(name, arguments, namespace):
                self._item = {
                    "type": "function_call",
                    "id": _id("fc_"),
                    "call_id": _id("call_"),
                    "name": name,
                    "arguments": json.dumps(arguments),
                    "status": "completed",
                    **({"namespace": namespace} if namespace else {}),
                }
        self._answer = answer
        self._response: Json = {
            "id": _id("resp_"),
            "object": "response",
            "created_at": 0,
            "model": body.get("model", "fake-model"),
            "status": "completed",
            "output": [self._item],
            "error": None,
            "incomplete_details": None,
            "usage": {
                "input_tokens": size // 4 + 1,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": size // 4 + 8,
            },
        }
        self._number = 0

    def plain(self) -> Json:
        return self._response

    def _event(self, event: str, **more: object) -> bytes:
        data: Json = {"type": event, "sequence_number": self._number, **more}
        self._number += 1
        return frame(data, event)

    def frames(self) -> Iterator[bytes]:
        started = {**self._response, "status": "in_progress", "output": [], "usage": None}
        at = {"item_id": self._item["id"], "output_index": 0}
        yield self._event("response.created", response=started)
        match self._answer:
            case Say(text):
                opened = {**self._item, "status": "in_progress", "content": []}
                part = {"type": "output_text", "text": "", "annotations": []}
                yield self._event("response.output_item.added", output_index=0, item=opened)
                yield self._event("response.content_part.added", **at, content_index=0, part=part)
                for piece in _pieces(text):
                    yield self._event(
                        "response.output_text.delta", **at, content_index=0, delta=piece
                    )
                yield self._event("response.output_text.done", **at, content_index=0, text=text)
            case CallTool():
                opened = {**self._item, "status": "in_progress", "arguments": ""}
                whole = self._item["arguments"]
                yield self._event("response.output_item.added", output_index=0, item=opened)
                yield self._event("response.function_call_arguments.delta", **at, delta=whole)
                yield self._event("response.function_call_arguments.done", **at, arguments=whole)
        yield self._event("response.output_item.done", output_index=0, item=self._item)
        yield self._event("response.completed", response=self._response)

    def empty(self) -> Json:
        return {**self._response, "output": []}

    def empty_frames(self) -> Iterator[bytes]:
        yield self._event("response.created", response={**self._response, "output": []})
        yield self._event("response.completed", response={**self._response, "output": []})


Wire = ChatWire | MessagesWire | ResponsesWire


def wire_for(kind: str, body: Json, answer: Say | CallTool, size: int) -> Wire:
    """The answer in the protocol of the request; `size` is the request's bytes, for the usage."""
    match kind:
        case "messages":
            return MessagesWire(body, answer, size)
        case "responses":
            return ResponsesWire(body, answer, size)
        case _:
            return ChatWire(body, answer, size)
