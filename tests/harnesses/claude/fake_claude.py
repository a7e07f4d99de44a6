"""A program that behaves like `claude -p --input-format stream-json`, and misbehaves on demand.

What it does with a message follows from a word in double brackets in its text. Each start is noted
in $HOME/starts.jsonl: arguments, folder, environment, pid.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

HOME = Path(os.environ["HOME"])
ARGUMENTS = sys.argv[1:]


def say(line: dict[str, object] | str) -> None:
    sys.stdout.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    sys.stdout.flush()


def argument(name: str) -> str:
    return ARGUMENTS[ARGUMENTS.index(name) + 1]


def session_id() -> str:
    return argument("--resume" if "--resume" in ARGUMENTS else "--session-id")


def transcript() -> Path:
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(Path.cwd()))
    folder = HOME / ".claude" / "projects" / slug
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{session_id()}.jsonl"


def records() -> list[dict[str, object]]:
    path = transcript()
    return [json.loads(each) for each in path.read_text().splitlines()] if path.exists() else []


def record(kind: str, content: object, identity: str | None = None, **more: object) -> None:
    known = [each for each in records() if each.get("uuid")]
    parent = known[-1]["uuid"] if known else None
    message: dict[str, object] = {"role": kind, "content": content}
    if kind == "assistant":
        text = [{"type": "text", "text": content}]
        message = {"id": f"msg_{uuid.uuid4().hex[:8]}", "role": kind, "content": text}
        message |= {"stop_reason": "end_turn", "model": "fake"}
    line = {
        **{"parentUuid": parent, "isSidechain": False, "type": kind, "message": message},
        **{
            "uuid": identity or str(uuid.uuid4()),
            "sessionId": session_id(),
            "cwd": str(Path.cwd()),
        },
        **more,
    }
    with transcript().open("a") as file:
        file.write(json.dumps(line) + "\n")


def result(turn: str, text: str, **more: object) -> None:
    say(
        {
            **{"type": "result", "subtype": "success", "is_error": False, "result": text},
            **{"session_id": session_id(), "user_message_uuids": [turn], "queued_turn_count": 0},
            **more,
        }
    )


def ask(request: str, body: dict[str, object]) -> dict[str, object]:
    say({"type": "control_request", "request_id": request, "request": body})
    return next_line()


def next_line() -> dict[str, object]:
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(0)
    value: dict[str, object] = json.loads(line)
    return value


def failing(turn: str, status: int, error: str, text: str) -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    say({"type": "assistant", "message": message, "error": error, "is_api_error_message": True})
    result(turn, text, is_error=True, api_error_status=status)


def wait_for_interrupt(turn: str) -> None:
    while next_line().get("type") != "control_request":
        pass
    result(turn, "", is_error=True, subtype="error_during_execution", errors=["aborted"])


BASH: dict[str, object] = {
    "subtype": "can_use_tool",
    "tool_name": "Bash",
    "input": {"command": "ls"},
}


def misbehave(turn: str, text: str) -> None:
    """Do what the text asks for, and end the turn."""
    reply = f"REPLY: {text}"
    match re.findall(r"\[\[([a-z-]+)\]\]", text):
        case ["limit"]:
            say({"type": "rate_limit_event", "rate_limit_info": {"resetsAt": 1_900_000_000}})
            failing(turn, 429, "rate_limit", "You've hit your limit")
            return
        case ["login"]:
            failing(turn, 401, "authentication_failed", "Please run /login")
            return
        case ["not-logged-in"]:
            result(turn, "Not logged in · Please run /login", is_error=True)
            return
        case ["silence"]:
            wait_for_interrupt(turn)
            return
        case ["deaf"]:
            while True:
                next_line()
        case ["stubborn"]:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            result(turn, reply)
            while True:
                time.sleep(60)
        case ["noise"]:
            sys.stderr.write("a warning\n")
            sys.stderr.flush()
            say("Warning: {not json")
            say("[1, 2]")
            say('"text"')
        case ["giant"]:
            say("x" * (65 * 1024 * 1024))
        case ["big"]:
            reply = "y" * (8 * 1024 * 1024)
        case ["flood"]:
            for _ in range(3000):
                sys.stderr.write("e" * 1000 + "\n")
        case ["grandchild"]:
            process = subprocess.Popen(["sleep", "1000"])
            reply = str(process.pid)
        case ["escaped"]:
            process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            reply = str(process.pid)
        case ["command"]:
            process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            (HOME / "command.pid").write_text(str(process.pid))
            wait_for_interrupt(turn)
            return
        case ["exit"]:
            sys.stderr.write("it cannot go on\n")
            raise SystemExit(3)
        case ["shut"]:
            os.close(1)
            while True:
                time.sleep(60)
        case ["own-turn"]:
            say({"type": "result", "is_error": False, "result": "mine", "queued_turn_count": 0})
        case ["ask"]:
            answer = ask("r-1", {**BASH, "permission_suggestions": SUGGESTIONS})
            reply = json.dumps(answer)
        case ["ask-and-die"]:
            say({"type": "control_request", "request_id": "r-1", "request": BASH})
            time.sleep(1)
            raise SystemExit(3)
        case ["ask-slowly"]:
            time.sleep(2)
            reply = json.dumps(ask("r-1", BASH))
        case ["ask-odd"]:
            odd = "\x1b[2J\u202e[/red]\x07"
            tool = {"tool_name": f"Bash{odd}", "input": {f"a{odd}": f"rm{odd}\nx"}}
            reply = json.dumps(ask("r-1", {"subtype": "can_use_tool", **tool}))
        case ["ask-twice"]:
            ask("r-1", BASH)
            reply = json.dumps(ask("r-2", BASH))
        case ["choose"]:
            reply = json.dumps(ask("r-1", CHOICE))
        case ["withdraw"]:
            say({"type": "control_request", "request_id": "r-1", "request": BASH})
            say({"type": "control_cancel_request", "request_id": "r-1"})
            wait_for_interrupt(turn)
            return
        case ["odd-request"]:
            reply = json.dumps(ask("r-9", {"subtype": "mcp_message"}))
        case ["background"]:
            say({"type": "system", "subtype": "background_tasks_changed", "tasks": [{"id": "1"}]})
        case ["ask-later"]:
            record("assistant", reply)
            result(turn, reply)
            answer = ask("r-later", BASH)
            (HOME / "later.json").write_text(json.dumps(answer))
            return
        case ["pieces"]:
            for event in PIECES:
                say({"type": "stream_event", "event": event, "parent_tool_use_id": None})
    record("assistant", reply)
    result(turn, reply)


SUGGESTIONS = [
    {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "ls"}],
        "behavior": "allow",
        "destination": "localSettings",
    },
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
]
CHOICE: dict[str, object] = {
    "subtype": "can_use_tool",
    "tool_name": "AskUserQuestion",
    "input": {
        "questions": [
            {"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]},
            {
                "question": "What else?",
                "multiSelect": True,
                "options": [{"label": "X"}, {"label": "Y"}, {"label": "Z"}],
            },
        ]
    },
}
PIECES: list[dict[str, object]] = [
    {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "first "}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "half"}},
    {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "second"}},
]


def main() -> None:
    if ARGUMENTS == ["--version"]:
        say("9.9.9 (Fake Code)")
        return
    start = {
        "arguments": ARGUMENTS,
        "cwd": str(Path.cwd()),
        "env": dict(os.environ),
        "pid": os.getpid(),
        "group": os.getpgid(0),
    }
    with (HOME / "starts.jsonl").open("a") as file:
        file.write(json.dumps(start) + "\n")
    if "--session-id" in ARGUMENTS and transcript().exists():
        sys.exit(f"Error: Session ID {session_id()} is already in use.")
    if "--resume" in ARGUMENTS and not transcript().exists():
        sys.exit(f"No conversation found with session ID: {session_id()}")
    while line := sys.stdin.readline():
        given = json.loads(line)
        if given.get("type") != "user":
            continue
        turn, text = given["uuid"], given["message"]["content"]
        if any(each.get("uuid") == turn for each in records()):
            say({"type": "command_lifecycle", "command_uuid": turn, "state": "completed"})
            continue
        if "[[altered]]" in text:
            record("user", text.upper(), turn)
        elif "[[unrecorded]]" not in text:
            record("user", text, turn)
        say({"type": "system", "subtype": "status", "status": "requesting",
             "user_message_uuids": [turn]})  # fmt: skip
        misbehave(turn, text)


if __name__ == "__main__":
    main()
