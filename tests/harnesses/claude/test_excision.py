"""What may be cut out of a transcript, what a copy holds, and when no copy is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_harnesses.claude import excision
from isola_harnesses.claude.excision import CannotCut
from isola_harnesses.claude.transcript import Record, Transcript, read_transcript

FOREIGN = "roll back the zebra invoice migration at once"
NEW = "00000000-0000-4000-8000-000000000001"


class Conversation:
    """Builds the records of a session."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.parent: str | None = None

    def add(self, kind: str, content: object, identity: str = "", **more: object) -> str:
        identity = identity or f"u-{len(self.records)}"
        self.records.append(
            {
                **{"parentUuid": self.parent, "isSidechain": False, "type": kind},
                **{"message": {"role": kind, "content": content}, "uuid": identity},
                **{"sessionId": "old", **more},
            }
        )
        self.parent = identity
        return identity

    def turn(self, text: str, reply: str = "", identity: str = "") -> str:
        self.records.append({"type": "queue-operation", "content": text, "sessionId": "old"})
        identity = self.add("user", text, identity)
        self.add("assistant", [{"type": "text", "text": reply or f"REPLY: {text}"}])
        self.records.append({"type": "last-prompt", "lastPrompt": text, "sessionId": "old"})
        return identity

    def tool(self, name: str, tool_input: dict[str, object], *, error: bool = False) -> None:
        call = f"t-{len(self.records)}"
        block = {"type": "tool_use", "id": call, "name": name, "input": tool_input}
        self.add("assistant", [block])
        result = {"type": "tool_result", "tool_use_id": call, "content": "ok", "is_error": error}
        self.add("user", [result])

    def found(self) -> Transcript:
        return Transcript(tuple(self.records), damaged=False)


def cut_out(
    conversation: Conversation, identity: str, folder: Path
) -> tuple[Sequence[Record], str]:
    found = conversation.found()
    start = excision.locate(found, identity, "")
    assert start is not None
    path = folder / f"{NEW}.jsonl"
    excision.write_copy(excision.cut(found, start, NEW), path)
    return read_transcript(path).records, path.read_text()


def test_the_copy_holds_everything_but_the_turn(tmp_path: Path) -> None:
    conversation = Conversation()
    conversation.turn("one")
    foreign = conversation.turn(FOREIGN, identity="foreign")
    conversation.tool("Read", {"file_path": "/zebra"})
    conversation.turn("three")
    records, text = cut_out(conversation, foreign, tmp_path)
    assert "zebra" not in text
    assert [each["type"] for each in records] == ["user", "assistant"] * 2
    assert {each["sessionId"] for each in records} == {NEW}
    assert records[2]["parentUuid"] == records[1]["uuid"]
    assert (tmp_path / f"{NEW}.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_first_turn_leaves_a_new_beginning(tmp_path: Path) -> None:
    conversation = Conversation()
    foreign = conversation.turn(FOREIGN)
    conversation.turn("two")
    records, _ = cut_out(conversation, foreign, tmp_path)
    assert records[0]["parentUuid"] is None


def test_notes_inside_a_turn_do_not_end_it(tmp_path: Path) -> None:
    conversation = Conversation()
    conversation.turn("one")
    foreign = conversation.add("user", FOREIGN)
    conversation.tool("Bash", {"command": "cat zebra"})
    conversation.add("user", "zebra note", isMeta=True)
    interrupted = [{"type": "text", "text": "[Request interrupted by user]"}]
    conversation.add("user", interrupted)
    conversation.turn("three")
    records, text = cut_out(conversation, foreign, tmp_path)
    assert "zebra" not in text
    assert "interrupted" not in text
    assert len(records) == 4


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda c: c.turn(f"you said: {FOREIGN}"), "quotes"),
        (lambda c: c.turn("why?", reply=f"Because:\n{FOREIGN.replace(' ', chr(10))}"), "quotes"),
        (lambda c: c.add("user", "summary", isCompactSummary=True), "compacted"),
        (lambda c: c.add("system", "", subtype="compact_boundary"), "compacted"),
        (lambda c: c.add("user", "aside", isSidechain=True), "side conversations"),
        (lambda c: c.add("user", "x", identity="u-1"), "one line"),
    ],
)
def test_no_copy_is_made_where_the_turn_left_traces(spoil: object, reason: str) -> None:
    conversation = Conversation()
    conversation.turn("one")
    foreign = conversation.turn(FOREIGN)
    conversation.turn("three")
    assert callable(spoil)
    spoil(conversation)
    found = conversation.found()
    start = excision.locate(found, foreign, "")
    assert start is not None
    with pytest.raises(CannotCut, match=reason):
        excision.cut(found, start, NEW)


def test_a_branched_history_is_not_cut() -> None:
    conversation = Conversation()
    fork = conversation.turn("one")
    foreign = conversation.turn(FOREIGN)
    conversation.turn("three")
    conversation.parent = fork
    conversation.turn("another three")
    found = conversation.found()
    start = excision.locate(found, foreign, "")
    assert start is not None
    with pytest.raises(CannotCut, match="branch"):
        excision.cut(found, start, NEW)


def test_parallel_tool_calls_are_no_branch(tmp_path: Path) -> None:
    conversation = Conversation()
    conversation.add("user", "one")
    first = conversation.add("assistant", [{"type": "tool_use", "id": "a", "name": "Read"}])
    second = conversation.add("assistant", [{"type": "tool_use", "id": "b", "name": "Read"}])
    conversation.parent = first
    conversation.add("user", [{"type": "tool_result", "tool_use_id": "a"}])
    conversation.parent = second
    conversation.add("user", [{"type": "tool_result", "tool_use_id": "b"}])
    foreign = conversation.turn(FOREIGN)
    conversation.turn("three")
    _, text = cut_out(conversation, foreign, tmp_path)
    assert "zebra" not in text


def test_what_was_said_before_the_turn_is_no_trace_of_it(tmp_path: Path) -> None:
    conversation = Conversation()
    conversation.turn("please run the whole test suite again")
    foreign = conversation.turn("please run the whole test suite again", identity="foreign")
    conversation.turn("please run the whole test suite again")
    records, _ = cut_out(conversation, foreign, tmp_path)
    assert len(records) == 4


def test_the_same_text_twice_is_not_guessed_at() -> None:
    conversation = Conversation()
    conversation.turn("again")
    conversation.turn("again")
    with pytest.raises(CannotCut, match="more than once"):
        excision.locate(conversation.found(), "not-there", "again")


def test_a_damaged_history_is_not_cut() -> None:
    conversation = Conversation()
    conversation.turn(FOREIGN)
    found = Transcript(tuple(conversation.records), damaged=True)
    with pytest.raises(CannotCut, match="cannot be read"):
        excision.cut(found, 1, NEW)


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    conversation = Conversation()
    foreign = conversation.turn(FOREIGN)
    conversation.turn("two")
    (tmp_path / f"{NEW}.jsonl").write_text("mine")
    with pytest.raises(FileExistsError):
        cut_out(conversation, foreign, tmp_path)
    assert (tmp_path / f"{NEW}.jsonl").read_text() == "mine"


def test_effects_are_the_files_and_commands_that_did_not_fail() -> None:
    conversation = Conversation()
    conversation.add("user", FOREIGN)
    conversation.tool("Edit", {"file_path": "/p/a.py"})
    conversation.tool("Edit", {"file_path": "/p/a.py"})
    conversation.tool("Write", {"file_path": "/p/denied.py"}, error=True)
    conversation.tool("NotebookEdit", {"notebook_path": "/p/n.ipynb"})
    conversation.tool("Bash", {"command": "make"})
    conversation.tool("Read", {"file_path": "/p/read.py"})
    conversation.tool("Agent", {"prompt": "look"})
    conversation.turn("next")
    conversation.tool("Write", {"file_path": "/p/later.py"})
    done = excision.effects(conversation.records, 0)
    assert done == excision.Effects(("/p/a.py", "/p/n.ipynb"), commands=1, subagents=1)


WORDS = st.lists(st.sampled_from(["alpha", "βήτα", "伽马", "🎉", "x" * 30, "\n", "\t"]), min_size=1)


@given(before=st.lists(WORDS, max_size=3), foreign=WORDS, after=st.lists(WORDS, max_size=3))
def test_a_cut_never_leaves_the_turn_and_never_loses_another(
    before: list[list[str]],
    foreign: list[str],
    after: list[list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    conversation = Conversation()
    for number, words in enumerate(before):
        conversation.turn(f"b{number} {' '.join(words)}", identity=f"before-{number}")
    marked = f"FOREIGN-MARK {' '.join(foreign)}"
    conversation.turn(marked, identity="foreign")
    for number, words in enumerate(after):
        conversation.turn(f"a{number} {' '.join(words)}", identity=f"after-{number}")
    try:
        records, text = cut_out(conversation, "foreign", tmp_path_factory.mktemp("cut"))
    except CannotCut:
        return
    assert "FOREIGN-MARK" not in text
    kept = [each["uuid"] for each in records if str(each["uuid"]).startswith(("before", "after"))]
    assert kept == [f"before-{n}" for n in range(len(before))] + [
        f"after-{n}" for n in range(len(after))
    ]
    assert json.loads(text.splitlines()[-1])["sessionId"] == NEW if text else True


def test_the_turns_that_its_own_tasks_set_off_go_with_it(tmp_path: Path) -> None:
    conversation = Conversation()
    conversation.turn("one")
    foreign = conversation.add("user", FOREIGN)
    call = [{"type": "tool_use", "id": "call-1", "name": "Agent", "input": {"prompt": "zebra"}}]
    conversation.add("assistant", call)
    conversation.turn("three")
    conversation.turn(
        "<task-notification>\n<tool-use-id>call-1</tool-use-id>\n<result>zebra found</result>",
        reply="The zebra is back.",
    )
    other = "<task-notification>\n<tool-use-id>call-7</tool-use-id>\n<result>giraffe</result>"
    conversation.turn(other)
    records, text = cut_out(conversation, foreign, tmp_path)
    assert "zebra" not in text
    assert len(records) == 6
    start = excision.locate(conversation.found(), foreign, "")
    assert start is not None
    assert excision.effects(conversation.records, start).subagents == 1
