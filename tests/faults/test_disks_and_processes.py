"""Disks that are full or read-only, and several processes on one store."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fake_model.script import Behaviour
from tests.fake_model.server import FakeModel
from tests.faults.conftest import Program, ended

# -- folders that cannot be used


@pytest.mark.parametrize("place", ["file", "file/below", "proc", "dangling"])
def test_a_place_that_cannot_hold_a_store_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("I am a file")
    (tmp_path / "dangling").symlink_to(tmp_path / "file" / "nowhere")
    where = Path("/proc/isola") if place == "proc" else tmp_path / place
    program = Program(where)
    ran = program.run("chat", "--text", "hello", "--json")
    assert (ran.code, ran.error["code"]) == (1, "store")
    assert "ISOLA_HOME" in ran.error["message"]
    assert ("/proc" if place == "proc" else str(tmp_path)) in ran.error["message"]
    assert (tmp_path / "file").read_text() == "I am a file"
    assert program.run("doctor", "--json").code == 1


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null", "/proc/self/isola.db"])
def test_a_store_path_that_is_no_file_is_refused(program: Program, path: str) -> None:
    program.configure(f"store:\n  path: {path}\n")
    ran = program.run("projects", "add", "billing", "--json")
    assert (ran.code, ran.error["code"]) == (1, "store")
    assert path in ran.error["message"] or str(Path(path).parent) in ran.error["message"]


def test_a_database_that_became_read_only_is_named_and_still_read(
    with_projects: Program, tmp_path: Path
) -> None:
    with_projects.run("chat", "--text", "@billing kept")
    with read_only(with_projects.home):
        ran = with_projects.run("chat", "--text", "@billing lost?", "--json")
        assert (ran.code, ran.error["code"]) == (1, "store")
        assert "Traceback" not in ran.err
    assert [each["text"] for each in with_projects.decisions()] == ["kept"]


class read_only:
    """A folder that cannot be written: remounted so for root, without rights for others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mounted = False

    def __enter__(self) -> None:
        if os.geteuid() == 0 and mounted(["--bind", self._folder, self._folder]):
            self._mounted = True
            if mounted(["-o", "remount,bind,ro", self._folder]):
                return
        for each in self._folder.iterdir():
            if each.is_file():
                each.chmod(0o400)
        self._folder.chmod(0o500)
        if os.access(self._folder, os.W_OK):  # root without the right to mount: a file instead
            self._folder.rename(self._folder.with_name("kept"))
            self._folder.write_text("in the way")

    def __exit__(self, *_: object) -> None:
        if self._mounted:
            subprocess.run(["umount", self._folder], check=True)
            return
        if self._folder.is_file():
            self._folder.unlink()
            self._folder.with_name("kept").rename(self._folder)
        self._folder.chmod(0o700)
        for each in self._folder.iterdir():
            if each.is_file():
                each.chmod(0o600)


def mounted(arguments: list[str | Path]) -> bool:
    """Whether this machine lets us mount that."""
    if sys.platform != "linux" or shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


# -- full disks


@pytest.fixture
def small_disk(program: Program) -> Iterator[Program]:
    """A program whose disk has four megabytes, or whose files may not grow beyond one."""
    program.home.mkdir(mode=0o700)
    if os.geteuid() == 0 and mounted(
        ["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", program.home]
    ):
        yield program
        subprocess.run(["umount", program.home], check=True)
        return
    program.limit_bytes = 2**20
    yield program


def fill(file: Path) -> None:
    """Take all the room that is left."""
    with file.open("wb", buffering=0) as room, suppress(OSError):
        while True:
            room.write(b"x" * 4096)


def test_a_full_disk_refuses_the_message_and_keeps_the_others(small_disk: Program) -> None:
    program = small_disk
    assert program.run("projects", "add", "billing").code == 0
    assert program.run("chat", "--text", "@billing kept").code == 0
    filler = program.home / "filler"
    if program.limit_bytes is None:
        fill(filler)
    big = b"@billing " + b"a long text " * 150_000
    ran = program.run("chat", "-", "--json", stdin=big)
    assert ran.code == 1
    assert ran.error["code"] == "store"
    assert "nothing was stored" in ran.error["message"]
    filler.unlink(missing_ok=True)
    program.limit_bytes = None
    assert [each["text"] for each in program.decisions()] == ["kept"]
    assert program.run("chat", "--text", "@billing again", "--json").json["status"] == "answered"


def test_output_that_cannot_be_written_is_no_traceback(with_projects: Program) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from isola_tui.__main__ import main; main()",
                "projects",
                "list",
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(sys.path), "ISOLA_HOME": str(with_projects.home)},
        )
        _, said = process.communicate(timeout=60)
    assert b"Traceback" not in said


# -- several processes


def test_ten_processes_start_on_one_new_database_at_once(program: Program) -> None:
    started = [program.start("projects", "add", f"p{number}", "--json") for number in range(10)]
    for each in started:
        ran = ended(each)
        assert ran.code == 0, ran.out + ran.err
    found = program.run("projects", "list", "--json").json["projects"]
    assert {each["id"] for each in found} == {f"p{number}" for number in range(10)}


def test_ten_processes_send_at_once_and_each_message_is_sent_once(
    with_projects: Program, model: FakeModel
) -> None:
    started = [
        with_projects.start("chat", "--text", f"@billing number {number}", "--json")
        for number in range(10)
    ]
    for each in started:
        ran = ended(each)
        assert (ran.code, ran.json["status"]) == (0, "answered"), ran.out + ran.err
    sent = sorted(each.user for each in model.requests)
    assert sent == sorted(f"number {number}" for number in range(10))
    assert len(with_projects.decisions()) == 10


def test_a_second_process_waits_for_the_turn_of_the_first(
    with_projects: Program, model: FakeModel
) -> None:
    first = with_projects.start("chat", "--text", "@billing [[sleep:0.6]] one", "--json")
    model.wait_for_requests(1)
    second = with_projects.start("chat", "--text", "@billing two", "--json")
    other = with_projects.run("chat", "--text", "@search three", "--json")
    assert other.json["status"] == "answered"
    assert ended(first).json["status"] == "answered"
    assert ended(second).json["status"] == "answered"
    billing = [each.user for each in model.requests if "three" not in each.user]
    assert billing == ["[[sleep:0.6]] one", "two"]


def test_a_killed_process_leaves_its_message_to_the_next(
    with_projects: Program, model: FakeModel
) -> None:
    model.next(Behaviour.STALL)
    killed = with_projects.start("chat", "--text", "@billing one", "--json")
    model.wait_for_requests(1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    ran = with_projects.run("chat", "--text", "@billing two", "--json")
    assert ran.json["status"] == "answered"
    one, two = with_projects.decisions()
    assert (one["text"], two["text"]) == ("one", "two")
    assert one["delivery"] in ("ANSWERED", "UNKNOWN")
    if one["delivery"] == "UNKNOWN":
        again = with_projects.run("resolve", one["id"], "--resend", "--json")
        assert again.json["status"] == "answered"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_waiting_command_and_loses_nothing(
    with_projects: Program, model: FakeModel, number: signal.Signals
) -> None:
    model.next(Behaviour.STALL)
    waiting = with_projects.start("chat", "--text", "@billing one")
    model.wait_for_requests(1)
    waiting.send_signal(number)
    ran = ended(waiting)
    assert ran.code == 128 + number
    assert "Traceback" not in ran.err
    with_projects.run("tick", "--deliver")
    (one,) = with_projects.decisions()
    assert (one["text"], one["delivery"]) == ("one", "ANSWERED")
