"""The lines of `claude -p --input-format stream-json --output-format stream-json`, both ways.

Pure: what to send, and what a turn has come to by the lines that came back. Everything here was
measured on 2.1.332. A turn's failure is told by `is_error` and `api_error_status`, never by
`subtype`, which says "success" for an API error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from isola_core.ports import FailureKind, Sink, TurnEvent, TurnEventKind
from isola_core.text import safe_label

Line = Mapping[str, object]

_TOOL_LABEL: Final = 160
_KEPT: Final = (
    "num_turns",
    "duration_ms",
    "duration_api_ms",
    "total_cost_usd",
    "stop_reason",
    "terminal_reason",
    "api_error_status",
    "local_command",
)


def user_line(text: str, turn: str) -> dict[str, object]:
    """The line that submits one message. Its uuid becomes the uuid of the transcript's record."""
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "uuid": turn}


def interrupt_line(request: str) -> dict[str, object]:
    """The line that asks the running turn to end."""
    return {"type": "control_request", "request_id": request, "request": {"subtype": "interrupt"}}


def response_line(request: str, response: Mapping[str, object]) -> dict[str, object]:
    """The line that answers a request of the child."""
    body = {"subtype": "success", "request_id": request, "response": dict(response)}
    return {"type": "control_response", "response": body}


def refusal_line(request: str, reason: str) -> dict[str, object]:
    """The line that says that we do not do what the child asks."""
    body = {"subtype": "error", "request_id": request, "error": reason}
    return {"type": "control_response", "response": body}


@dataclass(slots=True)
class Turn:
    """What is known of a running turn. `uuid` is our message's own."""

    uuid: str
    text: str
    raw: bool
    sink: Sink
    interrupted: bool = False
    submitted: bool = False
    started: bool = False
    received: bool = False
    session_id: str = ""
    limits: Line | None = None
    failed: Line | None = None
    """The last message of the agent, where it is an error of the API and not an answer."""
    result: Line | None = None
    model: str = ""
    version: str = ""
    others: list[Line] = field(default_factory=list)
    """Results that are not ours: turns that the agent began by itself, or a refusal to start."""
    _said: bool = field(default=False)

    def take(self, line: Line) -> bool:
        """Take one line; True when the turn has ended."""
        match line.get("type"):
            case "stream_event":
                self._stream(line)
            case "assistant":
                self._assistant(line)
            case "system":
                self._system(line)
            case "rate_limit_event":
                info = line.get("rate_limit_info")
                self.limits = info if isinstance(info, dict) else line
            case "conversation_reset":
                self.started = True
            case "command_lifecycle" if line.get("command_uuid") == self.uuid:
                self.started = True
                # Without a result: Claude Code knew the uuid, this message was already answered.
                return line.get("state") in ("completed", "cancelled")
            case "result":
                return self._ended(line)
        return False

    def _stream(self, line: Line) -> None:
        event = line.get("event")
        if line.get("parent_tool_use_id") is not None or not isinstance(event, dict):
            return
        self.started = True
        block, delta = event.get("content_block"), event.get("delta")
        if event.get("type") == "content_block_start" and isinstance(block, dict):
            if block.get("type") == "text" and self._said:
                self.sink(TurnEvent(TurnEventKind.TEXT, "\n\n"))
        elif isinstance(delta, dict) and delta.get("type") == "text_delta":
            text = delta.get("text")
            if isinstance(text, str) and text:
                self._said = True
                self.sink(TurnEvent(TurnEventKind.TEXT, text))

    def _assistant(self, line: Line) -> None:
        if line.get("parent_tool_use_id") is not None:
            return
        self.started = True
        error = line.get("is_api_error_message") or line.get("error")
        self.failed = line if error else None
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                self.sink(TurnEvent(TurnEventKind.TOOL, tool_label(block)))

    def _system(self, line: Line) -> None:
        match line.get("subtype"):
            case "init":
                self.model = str(line.get("model") or "")
                self.version = str(line.get("claude_code_version") or "")
            case "status" if isinstance(status := line.get("status"), str):
                uuids = line.get("user_message_uuids")
                self.started = self.started or (isinstance(uuids, list) and self.uuid in uuids)
                if status != "requesting":
                    self.sink(TurnEvent(TurnEventKind.STATUS, safe_label(status, _TOOL_LABEL)))

    def _ended(self, line: Line) -> bool:
        uuids = line.get("user_message_uuids")
        if isinstance(uuids, list) and uuids:
            ours = self.uuid in uuids
        elif isinstance(single := line.get("user_message_uuid"), str):
            ours = single == self.uuid
        else:
            # An older version names no message; 2.1.332 names none where it began by itself.
            ours = self.started and "queued_turn_count" not in line
        if not ours and not (self.interrupted and line.get("is_error")):
            self.others.append(line)
            return False
        self.result = line
        self.session_id = str(line.get("session_id") or "")
        return True


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended, by its lines: a reply, or a failure and its text."""

    reply: str = ""
    failure: FailureKind | None = None
    error: str = ""


def outcome(turn: Turn) -> Outcome:
    """What a turn with a result came to."""
    result = turn.result or {}
    said = result.get("result")
    failed = bool(result.get("is_error")) or turn.failed is not None
    if not failed and isinstance(said, str):
        return Outcome(reply=said)
    if turn.interrupted:
        return Outcome(failure=FailureKind.CANCELLED, error="The turn was interrupted.")
    text = error_text(result) or f"Claude Code ended the turn: {result.get('subtype')}."
    return Outcome(failure=_kind(turn, text), error=text)


def error_text(result: Line) -> str:
    """What a failed result says, "" where it says nothing."""
    said, errors = result.get("result"), result.get("errors")
    texts = [said] if isinstance(said, str) and said else []
    texts += [each for each in errors if isinstance(each, str)] if isinstance(errors, list) else []
    return "\n".join(texts)


def _kind(turn: Turn, text: str) -> FailureKind:
    result, failed = turn.result or {}, turn.failed or {}
    status = result.get("api_error_status") or failed.get("api_error_status")
    named = failed.get("error")
    if status in (401, 403) or named == "authentication_failed":
        return FailureKind.AUTH_EXPIRED
    if status == 429 or named in ("rate_limit", "billing_error"):
        return FailureKind.RATE_LIMITED
    if result.get("api_error") == "connection_failed" or failed.get("api_error") == (
        "connection_failed"
    ):
        return FailureKind.UNREACHABLE
    if status is None and text.startswith(("Not logged in", "Invalid API key")):
        return FailureKind.AUTH_EXPIRED
    return FailureKind.ERROR


def diagnostics(turn: Turn) -> dict[str, object]:
    """What the backend said about the turn, for a person who looks for the reason of something."""
    result = turn.result or {}
    meta = {name: result[name] for name in _KEPT if result.get(name) is not None}
    denials = result.get("permission_denials")
    if isinstance(denials, list) and denials:
        meta["denied"] = [each.get("tool_name") for each in denials if isinstance(each, dict)]
    if turn.limits is not None:
        meta["limits"] = dict(turn.limits)
    if turn.model:
        meta["model"] = turn.model
    if turn.version:
        meta["version"] = turn.version
    if turn.others:
        meta["other_results"] = len(turn.others)
    return meta


def tool_label(block: Mapping[str, object]) -> str:
    """One line about a tool call: its name and what it acts on."""
    given = block.get("input")
    tool_input: Mapping[str, object] = given if isinstance(given, dict) else {}
    for name in ("command", "file_path", "notebook_path", "path", "pattern", "url", "description"):
        if isinstance(value := tool_input.get(name), str) and value:
            return safe_label(f"{block.get('name')}: {value}", _TOOL_LABEL)
    return safe_label(str(block.get("name")), _TOOL_LABEL)
