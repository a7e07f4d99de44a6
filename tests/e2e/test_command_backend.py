"""Any program as a backend, described in the configuration alone and reached through `isola chat`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.path import Installation, environment
from tests.fake_model.server import FakeModel

AGENT = Path(__file__).parents[1] / "harnesses" / "scripted_agent.py"

Begin = Callable[[str], Installation]


@pytest.fixture
def begin(isola_program: Path, tmp_path: Path) -> Iterator[Begin]:
    """An installation with this `harness` section; `STATE` in it is the agent's own folder."""
    with FakeModel() as model:
        (tmp_path / "state").mkdir()

        def start(harness: str) -> Installation:
            installation = Installation(isola_program, environment(tmp_path), tmp_path, model)
            home = Path(installation.env["ISOLA_HOME"])
            home.mkdir(mode=0o700)
            harness = harness.replace("STATE", str(tmp_path / "state"))
            (home / "config.yaml").write_text(f"harness:\n  type: command\n{harness}")
            for name in ("billing", "search"):
                (tmp_path / name).mkdir()
                installation.run("projects", "add", name, "--path", str(tmp_path / name))
            return installation

        yield start
        assert not model.seen


AGENT_BY_STDIN = f"""
  argv: [{sys.executable}, {AGENT}, --state, STATE, --new]
  resume: [{sys.executable}, {AGENT}, --state, STATE, --resume, "{{session}}"]
  reply: last-json-line
  reply_path: result
  reply_match: {{type: result}}
  session_path: session_id
"""
AGENT_BY_ARGUMENT = AGENT_BY_STDIN.replace('"{session}"]', '"{session}", --by-argument, "{prompt}"]').replace(
    "--new]", '--new, --by-argument, "{prompt}"]'
)  # fmt: skip


def seen(folder: Path) -> list[str]:
    """What the agent had before it, turn by turn."""
    lines = (folder / "state" / "seen.jsonl").read_text().splitlines()
    return [json.loads(each) for each in lines]


@pytest.mark.parametrize("harness", [AGENT_BY_STDIN, AGENT_BY_ARGUMENT], ids=["stdin", "argument"])
def test_an_agent_keeps_its_sessions_and_answers_among_noise(
    begin: Begin, tmp_path: Path, harness: str
) -> None:
    installation = begin(harness)
    for text in ("@billing one\n  发票 \t $(rm -rf x)", "@search other", "@billing two"):
        (done,) = installation.json("chat", "--text", text)
        assert done["status"] == "answered"
        assert done["reply"] == "REPLY: " + text.partition(" ")[2]
    first, other, second = seen(tmp_path)
    assert first == "one\n  发票 \t $(rm -rf x)"
    assert other == "other"
    assert second == f"{first}\ntwo"


def test_a_failure_is_an_error_and_a_correction_starts_afresh_and_says_why(
    begin: Begin, tmp_path: Path
) -> None:
    installation = begin(AGENT_BY_STDIN)
    (failed,) = installation.json("chat", "--text", "@billing fail", code=1)
    assert (failed["status"], failed["reply"]) == ("failed", "")
    assert "API Error: 500" in failed["error"]["message"]
    installation.json("chat", "--text", "@billing keep this")
    (wrong,) = installation.json("chat", "--text", "@billing MARKER")
    printed = installation.run("correct", wrong["decision_id"], "search")
    assert "billing got a fresh session" in printed
    assert "this backend cannot forget one turn alone" in printed
    installation.json("chat", "--text", "@billing afterwards")
    last = seen(tmp_path)[-1]
    assert "MARKER" not in last
    assert "keep this" in last
    assert any(each == "MARKER" for each in seen(tmp_path)[3:])


SCRIPT = """#!/bin/sh
printf 'a warning\\n' >&2
printf '\\033[1mYou said:\\033[0m '
cat
sleep 1000 >/dev/null 2>&1 &
echo $! >> "$(dirname "$0")/left.txt"
"""


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_small_script_is_enough_and_leaves_nothing_running(begin: Begin, tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    installation = begin(f"  argv: [{script}]\n")
    (done,) = installation.json("chat", "--text", "@billing hello")
    assert done["reply"] == "You said: hello"
    (left,) = (tmp_path / "left.txt").read_text().split()
    assert not runs(int(left))
    assert list((tmp_path / "billing").iterdir()) == []


def test_a_command_that_is_silent_for_too_long_is_ended(begin: Begin, tmp_path: Path) -> None:
    installation = begin(f"  argv: [{sys.executable}, -c, 'input(); import time; time.sleep(1000)']\n"
                         "  idle_timeout_s: 0.5\n")  # fmt: skip
    (done,) = installation.json("chat", "--text", "@billing hello", code=1)
    assert done["status"] == "failed"
    assert done["error"]["message"]
