"""Takes one turn out of a session: a surgical copy of its transcript without that turn.

The original is never written. The copy gets a session id of its own; it holds only the records of
the conversation (those with a `uuid`): the others (queue, last prompt, titles, recorded requests)
quote prompts and are not needed to resume (measured on 2.1.332). The copy is read back and checked
before anybody uses it. Where a copy cannot be trusted to be clean, `cut` says why instead.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isola_harnesses.claude.transcript import (
    Record,
    Transcript,
    blocks,
    content,
    find_turn,
    is_prompt,
    read_transcript,
    text_of,
    turn_end,
)

PIECE: Final = 24
"""Characters of the person's text that are distinctive: found again later, it was quoted."""

REPLY_PIECE: Final = 80
"""The same for the agent's own words, which repeat themselves more."""

_SHORTEST: Final = 8
"""A whole text shorter than this says nothing by being found again."""

_EDITS: Final = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})


class CannotCut(Exception):
    """The turn cannot be taken out of this history; the text says why, for the person."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What a turn did outside its history: files it changed; calls that may have changed more."""

    files: tuple[str, ...] = ()
    commands: int = 0
    subagents: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """A copy to be written: the records of the original without one turn."""

    records: tuple[Record, ...]
    kept_prompts: tuple[str, ...]
    gone: tuple[str, ...]
    """Texts of which no distinctive piece may be in the copy."""
    said: tuple[str, ...]
    allowed: str
    """What the history said before the turn: pieces of it are no sign of the turn."""


def locate(found: Transcript, turn_id: str, sent: str) -> int | None:
    """The index of the prompt to be forgotten: by its uuid, else the only one with this text."""
    index = find_turn(found.records, turn_id)
    if index is not None:
        return index
    same = [
        number
        for number, record in enumerate(found.records)
        if is_prompt(record) and content(record) == sent
    ]
    if len(same) > 1:
        raise CannotCut("the same text was sent more than once and the turn is not identified")
    return same[0] if same else None


def quoted(found: Transcript, sent: str) -> bool:
    """Whether any distinctive piece of a text stands anywhere in a history."""
    words = _squeeze(_strings(found.records))
    return _shares(words, [sent], PIECE, "")


def span(records: Sequence[Record], start: int) -> frozenset[int]:
    """The indices of a turn's records, with those of the turns that its own tasks set off.

    A task in the background reports with a prompt of its own, which names the tool call.
    """
    end = turn_end(records, start)
    found = set(range(start, end))
    calls = _calls(records[start:end])
    while end < len(records):
        begun, end = end, turn_end(records, end)
        if _reports_of(records[begun], calls):
            found.update(range(begun, end))
            calls |= _calls(records[begun:end])
    return frozenset(found)


def _calls(records: Iterable[Record]) -> set[str]:
    return {
        str(block.get("id"))
        for record in records
        if record.get("type") == "assistant"
        for block in blocks(record)
        if block.get("type") == "tool_use"
    }


def _reports_of(prompt: Record, calls: set[str]) -> bool:
    text = text_of(prompt)
    return text.startswith("<task-notification>") and any(
        f"<tool-use-id>{call}</tool-use-id>" in text for call in calls
    )


def effects(records: Sequence[Record], start: int) -> Effects:
    """What the turn that starts at `start` changed, by its tool calls that did not fail."""
    turn = [records[index] for index in sorted(span(records, start))]
    failed = {
        block.get("tool_use_id")
        for record in turn
        if record.get("type") == "user"
        for block in blocks(record)
        if block.get("type") == "tool_result" and block.get("is_error")
    }
    files: dict[str, None] = {}
    commands = subagents = 0
    for record in turn:
        if record.get("type") != "assistant":
            continue
        for block in blocks(record):
            if block.get("type") != "tool_use" or block.get("id") in failed:
                continue
            name, given = str(block.get("name")), block.get("input")
            tool_input = given if isinstance(given, dict) else {}
            if name in _EDITS:
                path = tool_input.get("file_path") or tool_input.get("notebook_path")
                if isinstance(path, str):
                    files[path] = None
            elif name in ("Agent", "Task"):
                subagents += 1
            elif name == "Bash" or name.startswith("mcp__"):
                commands += 1
    return Effects(tuple(files), commands, subagents)


def cut(found: Transcript, start: int, session_id: str) -> Cut:
    """The records of the copy. Raises `CannotCut` where the turn has left traces elsewhere."""
    records = found.records
    if found.damaged:
        raise CannotCut("its record has lines that cannot be read")
    removed = span(records, start)
    turn = [records[index] for index in sorted(removed)]
    before = records[:start]
    after = [each for index, each in enumerate(records) if index > start and index not in removed]
    if any(_compacts(record) for record in (*turn, *after)):
        raise CannotCut("the conversation was compacted since, and the summary may tell of it")
    chained = [record for record in (*before, *after) if isinstance(record.get("uuid"), str)]
    if any(record.get("isSidechain") for record in chained):
        raise CannotCut("its history has side conversations")
    _check_chain(records)
    gone = (text_of(turn[0]),)
    said = tuple(
        text_of(record)
        for record in turn[1:]
        if record.get("type") == "assistant" or is_prompt(record)
    )
    # Only the conversation counts: the queue before the turn quotes its prompt too.
    earlier, later = (
        _squeeze(_strings(each for each in part if isinstance(each.get("uuid"), str)))
        for part in (before, after)
    )
    if _shares(later, gone, PIECE, earlier) or _shares(later, said, REPLY_PIECE, earlier):
        raise CannotCut("a later turn quotes it")
    parents = {
        str(record["uuid"]): record.get("parentUuid") for record in turn if record.get("uuid")
    }
    kept = tuple(_mended(record, parents, session_id) for record in chained)
    prompts = tuple(str(record["uuid"]) for record in chained if is_prompt(record))
    return Cut(kept, prompts, gone, said, earlier)


def write_copy(planned: Cut, path: Path) -> None:
    """Write the copy, private and whole, and check what was written. Raises `CannotCut`, `OSError`.

    A copy that fails the check is removed again.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            for record in planned.records:
                file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())
        _check_copy(planned, path)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _check_copy(planned: Cut, path: Path) -> None:
    copy = read_transcript(path)
    if copy.damaged or len(copy.records) != len(planned.records):
        raise CannotCut("the copy could not be read back whole")
    if any(record.get("sessionId") != path.stem for record in copy.records):
        raise CannotCut("the copy mixes two sessions")
    _check_chain(copy.records)
    there = {str(record.get("uuid")) for record in copy.records if is_prompt(record)}
    if there != set(planned.kept_prompts):
        raise CannotCut("the copy lost a turn that has to stay")
    words = _squeeze(_strings(copy.records))
    if _shares(words, planned.gone, PIECE, planned.allowed) or _shares(
        words, planned.said, REPLY_PIECE, planned.allowed
    ):
        raise CannotCut("the copy still holds a piece of it")


def _check_chain(records: Sequence[Record]) -> None:
    """Every record's parent comes before it, and the last one leads back through all prompts."""
    seen: dict[str, Record] = {}
    last: Record | None = None
    start = 0
    for index, record in enumerate(records):
        if _compacts(record):
            start = index
    for index, record in enumerate(records):
        uuid, parent = record.get("uuid"), record.get("parentUuid")
        if not isinstance(uuid, str) or record.get("isSidechain"):
            continue
        if uuid in seen or (parent is not None and parent not in seen):
            raise CannotCut("its history is not one line of turns")
        seen[uuid] = record
        if index >= start:
            last = record
    line: set[str] = set()
    while last is not None:
        line.add(str(last["uuid"]))
        last = seen.get(str(last.get("parentUuid")))
    for record in records[start:]:
        if is_prompt(record) and isinstance(record.get("uuid"), str) and record["uuid"] not in line:
            raise CannotCut("its history has more than one branch")


def _compacts(record: Record) -> bool:
    if record.get("isCompactSummary"):
        return True
    subtype = record.get("subtype")
    return isinstance(subtype, str) and subtype.endswith("compact_boundary")


def _mended(record: Record, parents: dict[str, object], session_id: str) -> Record:
    """The record under the new session id, its parent the nearest one that stays."""
    parent = record.get("parentUuid")
    while isinstance(parent, str) and parent in parents:
        parent = parents[parent]
    mended = {**record, "sessionId": session_id}
    if "parentUuid" in record:
        mended["parentUuid"] = parent
    return mended


def _strings(values: Iterable[object]) -> Iterator[str]:
    """Every string of nested JSON values, each once."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _strings(value.values())
        elif isinstance(value, list):
            yield from _strings(value)


def _squeeze(strings: Iterable[str]) -> str:
    """Strings as one text, white space folded: a quotation may have other line ends."""
    return "\x00".join(" ".join(each.split()) for each in strings)


def _shares(haystack: str, texts: Iterable[str], length: int, allowed: str) -> bool:
    """Whether the haystack has a piece of this length of any of the texts, not counting pieces of
    `allowed`; a shorter text counts whole."""
    pieces: dict[int, set[str]] = {}
    for text in texts:
        words = " ".join(text.split())
        if len(words) < length:
            if len(words) >= _SHORTEST:
                pieces.setdefault(len(words), set()).add(words)
            continue
        found = pieces.setdefault(length, set())
        found.update(words[at : at + length] for at in range(len(words) - length + 1))
    for size, wanted in pieces.items():
        for known in _windows(allowed, size):
            wanted.discard(known)
        if wanted and any(window in wanted for window in _windows(haystack, size)):
            return True
    return False


def _windows(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(len(text) - size + 1))
