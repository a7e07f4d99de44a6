"""A process is only called dead where that is certain."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import isola_core.processes as module
from isola_core.ports import Processes, ProcessIdentity
from isola_core.processes import SystemProcesses, started


@pytest.fixture
def processes(tmp_path: Path) -> SystemProcesses:
    return SystemProcesses(tmp_path / "data")


def identity_of(pid: int, me: ProcessIdentity) -> ProcessIdentity:
    return replace(me, pid=pid, started=started(pid))


def test_this_process_is_alive(processes: SystemProcesses) -> None:
    port: Processes = processes
    me = port.me()
    assert me.pid == os.getpid()
    assert port.alive(me) is True
    assert port.me() == me


def test_another_process_sees_the_same_machine_boot_and_start(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    code = (
        "import sys; from pathlib import Path; from isola_core.processes import *;"
        "me = SystemProcesses(Path(sys.argv[1])).me();"
        "print(me.machine, me.boot, started(int(sys.argv[2])))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "data"), str(os.getpid())],
        capture_output=True,
        text=True,
        check=True,
    )
    me = processes.me()
    assert answer.stdout.split() == [me.machine, me.boot, str(me.started)]


def test_an_ended_process_is_dead(processes: SystemProcesses) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identity_of(child.pid, processes.me())
    assert processes.alive(identity) is True
    child.kill()
    child.wait()
    assert processes.alive(identity) is False
    child.communicate()


def test_a_process_that_nobody_waited_for_is_dead(processes: SystemProcesses) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    identity = identity_of(child.pid, processes.me())
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.alive(identity) is False
    child.wait()


def test_a_later_process_with_the_same_pid_is_another_one(processes: SystemProcesses) -> None:
    me = processes.me()
    assert processes.alive(replace(me, started=me.started - 10)) is False
    assert processes.alive(replace(me, pid=0)) is False
    assert processes.alive(replace(me, pid=-1)) is False


def test_nothing_lives_on_over_a_reboot(processes: SystemProcesses) -> None:
    assert processes.alive(replace(processes.me(), boot="another")) is False


def test_another_machine_cannot_be_known(processes: SystemProcesses) -> None:
    assert processes.alive(replace(processes.me(), machine="another")) is None


def test_another_container_of_this_machine_cannot_be_known(processes: SystemProcesses) -> None:
    me = processes.me()
    elsewhere = me.boot.partition("/")[0] + "/4026539999"
    assert processes.alive(replace(me, boot=elsewhere)) is None


def test_setting_the_wall_clock_kills_nobody(
    processes: SystemProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("start times are the kernel's own only on Linux")
    me = processes.me()
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: 12.5)
    assert processes.alive(me) is True


def test_the_boot_time_serves_where_there_is_no_boot_id(
    processes: SystemProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SYSTEM_BOOT_ID", tmp_path / "none")
    assert processes.boot.startswith(f"t{int(psutil.boot_time())}")
    assert processes.alive(processes.me()) is True


def test_the_machine_keeps_its_name(tmp_path: Path) -> None:
    first = SystemProcesses(tmp_path / "data")
    assert first.machine == SystemProcesses(tmp_path / "data").machine
    assert first.machine != SystemProcesses(tmp_path / "other").machine
    file = tmp_path / "data" / "machine-id"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_two_machines_that_share_a_home_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set()
    for number in "12":
        system = tmp_path / f"etc-{number}"
        system.write_text(number * 32 + "\n")
        monkeypatch.setattr(module, "_SYSTEM_MACHINE_IDS", (tmp_path / "none", system))
        names.add(SystemProcesses(tmp_path / "data").machine)
    monkeypatch.setattr(module, "_SYSTEM_MACHINE_IDS", ())
    names.add(SystemProcesses(tmp_path / "data").machine)
    assert len(names) == 3


def test_processes_that_start_together_agree_on_the_name(tmp_path: Path) -> None:
    with ThreadPoolExecutor(10) as pool:
        names = {*pool.map(lambda _: SystemProcesses(tmp_path / "data").machine, range(50))}
    assert len(names) == 1
    assert [each.name for each in (tmp_path / "data").iterdir()] == ["machine-id"]


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"short", b"x" * 5000])
def test_a_damaged_name_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "machine-id").write_bytes(damage)
    name = SystemProcesses(tmp_path).machine
    assert len(name) == 32
    assert SystemProcesses(tmp_path).machine == name
