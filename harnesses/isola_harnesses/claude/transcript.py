"""Claude Code's own record of a session: where it is, what it proves.

A transcript is a file of JSON lines, `<config home>/projects/<slug>/<session id>.jsonl`. Records
with a `uuid` form the conversation: each names the one before it in `parentUuid`. The uuid that we
put on a message is kept as the uuid of its record (measured on 2.1.332), so the same text sent
twice is told apart.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psutil

from isola_core.ports import Outgoing, QuotedContext, SessionRef
from isola_harnesses.context import message_of, render

Record = dict[str, object]

_NAMESPACE: Final = uuid.UUID("6f0f3c64-3b8e-5d43-9c3b-8f0b2d0f6a11")
_SLUG_LIMIT: Final = 200
_INTERRUPTED: Final = "[Request interrupted by user"


def turn_id(delivery: str) -> str:
    """The uuid of the message that a delivery sends; the same for the same delivery."""
    return str(uuid.uuid5(_NAMESPACE, f"turn:{delivery}"))


def first_session_id(session: SessionRef, cwd: Path) -> str:
    """The id of a session that has none yet; the same after a crash that forgot it."""
    return str(uuid.uuid5(_NAMESPACE, f"session:{session.id}:{session.generation}:{cwd}"))


def sent_text(message: Outgoing) -> str:
    """The text as it is submitted.

    Normal form: quoted context in front, the message byte for byte, and one space before a text
    that begins with `/`. Claude Code runs such a text as a command also in stream mode (`/clear`,
    `/config key=value`, a project's own commands with their shell lines); with a space in front it
    is text (measured), also before tabs and line ends. `!`, `?`, `#` are text as they are.
    """
    if message.raw:
        return message.text
    text = render(message.context, message.text)
    return f" {text}" if text.startswith("/") else text


def holds_message(record: Record, message: Outgoing) -> bool:
    """Whether a record has exactly this message, with whatever context was quoted before it."""
    found = content(record)
    if not isinstance(found, str):
        return False
    quoted_before = message_of(found)
    if quoted_before != found:
        return quoted_before == message.text
    return found == sent_text(replace(message, context=QuotedContext()))


def project_folder(home: Path, cwd: Path) -> Path:
    """Where the transcripts of a folder are, or would be."""
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(cwd))
    projects = home / "projects"
    if len(slug) <= _SLUG_LIMIT:
        return projects / slug
    # A longer one is cut, and ends with a hash of Claude Code's own: there can be several.
    found = sorted(projects.glob(f"{slug[:_SLUG_LIMIT]}-*")) if projects.is_dir() else []
    for folder in found:
        if any(name == str(cwd) for name in recorded_folders(folder)):
            return folder
    return projects / slug[:_SLUG_LIMIT]


def transcript_path(home: Path, cwd: Path, session_id: str) -> Path:
    """The transcript of a session that runs in `cwd`; it may not exist yet."""
    return project_folder(home, cwd) / f"{session_id}.jsonl"


def transcripts_elsewhere(home: Path, cwd: Path, session_id: str) -> list[Path]:
    """Transcripts of this session id under other folders."""
    own = transcript_path(home, cwd, session_id)
    return [path for path in (home / "projects").glob(f"*/{session_id}.jsonl") if path != own]


def recorded_folders(folder: Path, limit: int = 20) -> Iterator[str]:
    """The working folders that the newest transcripts of a project folder name."""
    paths = [(path.stat().st_mtime, path) for path in folder.glob("*.jsonl")]
    for _, path in sorted(paths, reverse=True)[:limit]:
        if cwd := recorded_folder(path):
            yield cwd


def recorded_folder(path: Path, limit: int = 256 * 1024) -> str | None:
    """The working folder that a transcript names first, in its first `limit` bytes."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        for line in file.read(limit).split(b"\n"):
            record = parse(line)
            if record and isinstance(cwd := record.get("cwd"), str):
                return cwd
    return None


@dataclass(frozen=True, slots=True)
class Transcript:
    """The records of a file in their order. `damaged` where a line could not be read."""

    records: tuple[Record, ...]
    damaged: bool


def read_transcript(path: Path) -> Transcript:
    """Read a whole transcript. Raises `OSError`."""
    records: list[Record] = []
    damaged = False
    with path.open("rb") as file:
        for line in file:
            if not line.strip():
                continue
            record = parse(line)
            if record is None:
                damaged = True
            else:
                records.append(record)
    return Transcript(tuple(records), damaged)


def parse(line: bytes) -> Record | None:
    """One line as a record, None where it is not a JSON object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def content(record: Record) -> object:
    """The content of a user's or assistant's record."""
    message = record.get("message")
    return message.get("content") if isinstance(message, dict) else None


def blocks(record: Record) -> list[Mapping[str, object]]:
    """The content as blocks; a plain string is one text block."""
    found = content(record)
    if isinstance(found, str):
        return [{"type": "text", "text": found}]
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text_of(record: Record) -> str:
    """The text blocks of a record, joined."""
    return "".join(
        text
        for block in blocks(record)
        if block.get("type") == "text" and isinstance(text := block.get("text"), str)
    )


def is_prompt(record: Record) -> bool:
    """Whether a record starts a turn: what the agent was told, not a tool's result or a note."""
    if record.get("type") != "user" or record.get("isSidechain"):
        return False
    if record.get("isMeta") or record.get("isCompactSummary"):
        return False
    if record.get("isVisibleInTranscriptOnly") or record.get("rowSource") == "harness":
        return False
    if any(block.get("type") == "tool_result" for block in blocks(record)):
        return False
    text = text_of(record)
    return not text.startswith((_INTERRUPTED, "<local-command-stdout>"))


def find_turn(records: Sequence[Record], wanted: str) -> int | None:
    """The index of the prompt with this uuid."""
    for index, record in enumerate(records):
        if record.get("uuid") == wanted and record.get("type") == "user":
            return index
    return None


def turn_end(records: Sequence[Record], start: int) -> int:
    """The index after the last record of the turn that starts at `start`."""
    for index in range(start + 1, len(records)):
        if is_prompt(records[index]):
            return index
    return len(records)


def reply_of(records: Sequence[Record], start: int) -> str | None:
    """The turn's answer, None while there is none. Error texts of the agent are no answers."""
    end = turn_end(records, start)
    answer: str | None = None
    pieces: dict[str, list[str]] = {}
    for record in records[start + 1 : end]:
        if record.get("type") != "assistant" or record.get("isSidechain"):
            continue
        message = record.get("message")
        if not isinstance(message, dict) or record.get("isApiErrorMessage"):
            continue
        if message.get("model") == "<synthetic>":
            continue
        key = str(message.get("id"))
        if text := text_of(record):
            pieces.setdefault(key, []).append(text)
        if message.get("stop_reason") in ("end_turn", "stop_sequence", "max_tokens", "refusal"):
            answer = key
    if answer is None:
        return None
    said = pieces.get(answer, [])
    return said[-1] if said else ""


class ReceiptWatch:
    """Looks for one prompt in a transcript while it grows; reads every byte once."""

    def __init__(self, home: Path, cwd: Path, session_id: str, wanted: str) -> None:
        self._home, self._cwd, self._session_id, self._wanted = home, cwd, session_id, wanted
        self._path = transcript_path(home, cwd, session_id)
        self._offset = self._path.stat().st_size if self._path.exists() else 0
        self._rest = b""
        self.found: Record | None = None

    def look(self) -> Record | None:
        """The prompt's record, once it is there."""
        if self.found is not None:
            return self.found
        if not self._offset and not self._path.exists():
            self._path = transcript_path(self._home, self._cwd, self._session_id)
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return None
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        mark = self._wanted.encode()
        for line in lines:
            if mark not in line:
                continue
            record = parse(line)
            if record and record.get("uuid") == self._wanted and record.get("type") == "user":
                self.found = record
        return self.found


@dataclass(frozen=True, slots=True)
class Holder:
    """A running Claude Code that has a session open."""

    pid: int
    cwd: str


def holders(home: Path, session_id: str) -> list[Holder]:
    """Running processes that have the session open, by Claude Code's own list of them.

    Claude Code itself lets two processes write one transcript; the second one must wait.
    """
    found = []
    with contextlib.suppress(OSError):
        for path in (home / "sessions").glob("*.json"):
            with contextlib.suppress(OSError):
                entry = parse(path.read_bytes())
                if entry and entry.get("sessionId") == session_id and _runs(entry):
                    found.append(Holder(int(str(entry["pid"])), str(entry.get("cwd", ""))))
    return found


def _runs(entry: Record) -> bool:
    pid = entry.get("pid")
    if not isinstance(pid, int) or not psutil.pid_exists(pid):
        return False
    started = entry.get("procStart")
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    fields = stat[stat.rfind(")") + 2 :].split()
    return fields[0] != "Z" and (not isinstance(started, str) or started == fields[19])
