"""The checks see what is there, change nothing, and a broken part breaks one check only."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

import isola_core.doctor.check as check_module
import isola_core.doctor.looks as looks
from isola_core.doctor import (
    Check,
    CheckResult,
    CheckStatus,
    DoctorInputs,
    Outcome,
    ProjectFolder,
    SqliteReport,
    StoreReport,
    StuckReport,
    Terminal,
    core_checks,
    exit_code,
    run_check,
    run_checks,
)
from isola_core.doctor.looks import overlaps
from isola_core.errors import HarnessError, StoreError, StoreTooNew

PASS, FAIL, NEED_HUMAN = CheckStatus.PASS, CheckStatus.FAIL, CheckStatus.NEED_HUMAN
TERMINAL = Terminal(attached=True, term="xterm-256color", colorterm="truecolor", encoding="utf-8")


@pytest.fixture
def inputs(tmp_path: Path) -> DoctorInputs:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    return DoctorInputs(
        config_file=tmp_path / "config.yaml",
        data_dir=data,
        database=data / "isola.db",
        terminal=TERMINAL,
        environ={"SET": "x"},
        config_problems=lambda: (),
        key_names=lambda: {},
        projects=lambda: (),
        sqlite=lambda: SqliteReport("3.45.1", "3.38.0", fts5=True),
        store=lambda: StoreReport(schema=1, newest=1),
        stuck=StuckReport,
    )


def entries(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


async def result(inputs: DoctorInputs, check_id: str) -> CheckResult:
    (check,) = [each for each in core_checks(inputs) if each.id == check_id]
    return await run_check(check)


async def test_where_everything_is_well_all_pass(inputs: DoctorInputs) -> None:
    results = await run_checks(core_checks(inputs))
    assert [each.found for each in results if each.status is not PASS] == []
    assert exit_code(results) == 0
    assert len({each.id for each in results}) == len(results)
    assert all(each.check_command and not each.fix_command for each in results)


async def test_on_a_fresh_machine_all_pass_and_nothing_is_made(
    inputs: DoctorInputs, tmp_path: Path
) -> None:
    inputs.data_dir.rmdir()
    fresh = replace(inputs, store=lambda: StoreReport(schema=None, newest=1))
    assert exit_code(await run_checks(core_checks(fresh))) == 0
    assert entries(tmp_path) == []


async def test_a_result_has_stable_keys(inputs: DoctorInputs) -> None:
    broken = replace(inputs, config_problems=lambda: ["config.yaml: auto_at: no", "config.yaml: b"])
    assert (await result(broken, "config")).as_json() == {
        "id": "config",
        "title": "The configuration can be read",
        "status": "need_human",
        "found": "2 to repair: config.yaml: auto_at: no; config.yaml: b",
        "check": f"cat {inputs.config_file}",
        "fix": f"${{EDITOR:-vi}} {inputs.config_file}",
    }


def outcome(status: CheckStatus) -> CheckResult:
    return CheckResult("a", "b", status, "", "", "")


@pytest.mark.parametrize(
    ("states", "code"),
    [([], 0), ([PASS], 0), ([NEED_HUMAN, PASS], 2), ([NEED_HUMAN, FAIL], 1), ([FAIL], 1)],
)
def test_the_exit_code_follows_the_worst(states: list[CheckStatus], code: int) -> None:
    assert exit_code(outcome(each) for each in states) == code


async def test_a_crashing_check_is_a_failed_check_and_the_others_run() -> None:
    def crash() -> Outcome:
        raise ZeroDivisionError("by password=hunter2")

    async def refuse() -> Outcome:
        raise StoreError("the disk is gone")

    results = await run_checks(
        [
            Check("a", "A", crash, "look a"),
            Check("b", "B", refuse),
            Check("c", "C", lambda: Outcome(PASS, "x\x1b[2J\n[/")),
        ]
    )
    assert [each.status for each in results] == [FAIL, FAIL, PASS]
    assert results[0].found == (
        "the check itself failed (ZeroDivisionError: by password=[masked credential])"
    )
    assert results[0].fix_command == "look a"
    assert results[1].found == "the disk is gone"
    assert results[2].found == "x[2J [/"


async def test_a_check_that_never_ends_is_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "CHECK_TIMEOUT_S", 0.01)

    async def wait() -> Outcome:
        await asyncio.Event().wait()
        raise AssertionError

    assert "no answer within" in (await run_check(Check("a", "A", wait))).found


async def test_an_old_python_fails(inputs: DoctorInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "PYTHON_MINIMUM", (99, 0))
    found = await result(inputs, "python")
    assert (found.status, "99.0" in found.found) == (FAIL, True)


@pytest.mark.parametrize(
    ("report", "status", "found"),
    [
        (SqliteReport("3.38.0", "3.38.0", fts5=True), PASS, "SQLite 3.38.0 with FTS5"),
        (SqliteReport("3.9.2", "3.38.0", fts5=True), FAIL, "SQLite 3.9.2, 3.38.0 is needed"),
        (
            SqliteReport("3.40.0", "3.38.0", fts5=False),
            FAIL,
            "SQLite 3.40.0 was built without FTS5",
        ),
    ],
)
async def test_sqlite_needs_its_version_and_full_text_search(
    inputs: DoctorInputs, report: SqliteReport, status: CheckStatus, found: str
) -> None:
    answer = await result(replace(inputs, sqlite=lambda: report), "sqlite")
    assert (answer.status, answer.found) == (status, found)


async def test_a_data_folder_that_others_can_read_fails_and_stays_as_it_is(
    inputs: DoctorInputs,
) -> None:
    inputs.data_dir.chmod(0o755)
    inputs.database.write_text("")
    inputs.database.chmod(0o644)
    found = await result(inputs, "data-folder")
    assert found.status is FAIL
    assert "(0755)" in found.found
    assert "(0644)" in found.found
    assert found.fix_command == f"chmod go= {inputs.data_dir} {inputs.database}"
    assert stat.S_IMODE(inputs.data_dir.stat().st_mode) == 0o755


async def test_a_data_folder_that_is_a_file_or_out_of_reach_fails(inputs: DoctorInputs) -> None:
    inputs.data_dir.rmdir()
    inputs.data_dir.write_text("")
    assert "is not a folder" in (await result(inputs, "data-folder")).found
    below = replace(inputs, data_dir=inputs.data_dir / "x")
    assert (await result(below, "data-folder")).status is FAIL
    if os.geteuid() != 0:
        inputs.data_dir.unlink()
        inputs.data_dir.mkdir(mode=0o500)
        assert "cannot be written" in (await result(inputs, "data-folder")).found
        inside = replace(inputs, data_dir=inputs.data_dir / "x")
        assert "ISOLA_HOME" in (await result(inside, "data-folder")).fix_command


@pytest.mark.parametrize(("part", "status"), [(0.5, PASS), (2, NEED_HUMAN), (20, FAIL)])
async def test_a_full_disk_is_seen(
    inputs: DoctorInputs, monkeypatch: pytest.MonkeyPatch, part: float, status: CheckStatus
) -> None:
    free = shutil.disk_usage(inputs.data_dir).free
    monkeypatch.setattr(looks, "DISK_LOW", int(free * part))
    assert (await result(inputs, "disk")).status is status


async def test_a_damaged_or_newer_database_fails(inputs: DoctorInputs) -> None:
    damaged = replace(inputs, store=lambda: StoreReport(1, 1, damage="row 3 missing from index"))
    found = await result(damaged, "store")
    assert (found.status, "row 3 missing" in found.found) == (FAIL, True)

    def newer() -> StoreReport:
        raise StoreTooNew("it was written by a newer version")

    found = await result(replace(inputs, store=newer), "store")
    assert (found.status, found.fix_command) == (FAIL, "pip install --upgrade isola-tui")
    older = await result(replace(inputs, store=lambda: StoreReport(1, 3)), "store")
    assert (older.status, "brings it to 3" in older.found) == (PASS, True)


async def test_what_is_stuck_needs_a_person(inputs: DoctorInputs) -> None:
    found = await result(
        replace(inputs, stuck=lambda: StuckReport(unknown_deliveries=2, overdue=1)), "stuck"
    )
    assert (found.status, found.fix_command) == (NEED_HUMAN, "isola decisions")
    assert found.found.startswith("2 deliveries of which nobody knows")
    overdue = await result(replace(inputs, stuck=lambda: StuckReport(overdue=1)), "stuck")
    assert overdue.fix_command == "isola tick"


async def test_a_missing_project_folder_fails(inputs: DoctorInputs, tmp_path: Path) -> None:
    projects = [ProjectFolder("a", "A", tmp_path), ProjectFolder("b", "B", tmp_path / "gone")]
    found = await result(replace(inputs, projects=lambda: projects), "project-folders")
    assert found.status is FAIL
    assert found.found == f"B: there is no folder {tmp_path / 'gone'}"
    assert found.fix_command == "isola projects edit b --path FOLDER"


async def test_projects_that_share_a_folder_need_a_person(
    inputs: DoctorInputs, tmp_path: Path
) -> None:
    (tmp_path / "mono" / "pay").mkdir(parents=True)
    (tmp_path / "mono-2").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mono")
    projects = [
        ProjectFolder("a", "A", tmp_path / "mono"),
        ProjectFolder("b", "B", tmp_path / "mono" / "pay"),
        ProjectFolder("c", "C", tmp_path / "mono-2"),
        ProjectFolder("d", "D", tmp_path / "link"),
    ]
    found = await result(replace(inputs, projects=lambda: projects), "project-overlap")
    assert found.status is NEED_HUMAN
    assert "D and A both use" in found.found
    assert "B (" in found.found
    assert [(outer.id, inner.id) for outer, inner in overlaps(projects)] == [("a", "d"), ("d", "b")]
    assert overlaps(projects[2:3]) == []


async def test_a_key_that_is_not_set_fails_and_its_value_is_never_shown(
    inputs: DoctorInputs,
) -> None:
    asked = replace(
        inputs,
        environ={"SET": "hunter2value", "BLANK": " "},
        key_names=lambda: {"SET": "judge", "BLANK": "harness", "GONE": "harnesses.a"},
    )
    found = await result(asked, "keys")
    assert found.found == "BLANK (for harness) is not set, GONE (for harnesses.a) is not set"
    assert (found.status, found.fix_command) == (FAIL, "export BLANK=...")
    fine = await result(replace(asked, key_names=lambda: {"SET": "judge"}), "keys")
    assert (fine.status, fine.found) == (PASS, "set: SET")


async def test_each_endpoint_is_a_check_of_its_own(inputs: DoctorInputs) -> None:
    async def answers() -> str:
        return "qwen3 at http://127.0.0.1"

    def refuses() -> str:
        raise HarnessError("http://127.0.0.1:1 refuses the connection")

    def breaks() -> str:
        raise ConnectionRefusedError("refused")

    asked = replace(inputs, endpoints={"judge": answers, "harness": refuses, "harnesses.a": breaks})
    found = [await result(asked, f"endpoint.{each}") for each in asked.endpoints]
    assert [each.status for each in found] == [PASS, FAIL, FAIL]
    assert found[1].found == "http://127.0.0.1:1 refuses the connection"


@pytest.mark.parametrize(
    ("terminal", "status", "found"),
    [
        (TERMINAL, PASS, "xterm-256color, UTF-8, 16 million colours"),
        (replace(TERMINAL, colorterm=""), PASS, "xterm-256color, UTF-8, 256 colours"),
        (replace(TERMINAL, colorterm="", term="xterm"), PASS, "xterm, UTF-8, 16 colours"),
        (replace(TERMINAL, term="dumb"), FAIL, "TERM is 'dumb': the program cannot draw here"),
        (replace(TERMINAL, term=""), FAIL, "TERM is '': the program cannot draw here"),
        (
            replace(TERMINAL, encoding="ascii"),
            NEED_HUMAN,
            "the encoding is ascii: signs and Chinese are lost",
        ),
        (
            replace(TERMINAL, attached=False, term="", encoding=""),
            PASS,
            "not run in a terminal, so nothing was looked at",
        ),
    ],
)
async def test_the_terminal_is_judged_by_what_it_says(
    inputs: DoctorInputs, terminal: Terminal, status: CheckStatus, found: str
) -> None:
    answer = await result(replace(inputs, terminal=terminal), "terminal")
    assert (answer.status, answer.found) == (status, found)
    assert Terminal.of_this_process().encoding


async def test_every_part_may_be_broken_at_once(inputs: DoctorInputs) -> None:
    def broken() -> NoReturn:
        raise RuntimeError("gone")

    asked = replace(
        inputs,
        config_problems=broken,
        key_names=broken,
        projects=broken,
        sqlite=broken,
        store=broken,
        stuck=broken,
    )
    results = await run_checks(core_checks(asked))
    assert {each.id for each in results if each.status is FAIL} == {
        "config", "keys", "project-folders", "project-overlap", "sqlite", "store", "stuck",
    }  # fmt: skip
    assert exit_code(results) == 1
