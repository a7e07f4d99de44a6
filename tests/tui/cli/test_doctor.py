"""`isola doctor`: one entry a check, exit codes, and nothing changed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from isola_core.processes import SystemProcesses
from tests.fake_model.server import FakeModel
from tests.tui.cli.conftest import Isola, Ran

ENTRY = {"id", "title", "status", "found", "check", "fix"}


def entry(ran: Ran, wanted: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [each for each in ran.json["checks"] if each["id"] == wanted]
    (one,) = found
    return one


def test_a_fresh_machine_passes_and_nothing_is_created(isola: Isola) -> None:
    ran = isola("doctor", "--json")
    assert ran.code == 0, ran.out
    assert ran.json["ok"] is True
    assert all(each.keys() == ENTRY for each in ran.json["checks"])
    assert len({each["id"] for each in ran.json["checks"]}) == len(ran.json["checks"])
    assert not Path(os.environ["ISOLA_HOME"]).exists()


def test_it_changes_nothing_in_a_store_in_use(isola: Isola, home: Path, projects: None) -> None:
    before = {each.name: each.read_bytes() for each in home.rglob("*") if each.is_file()}
    assert isola("doctor").code == 0
    after = {each.name: each.read_bytes() for each in home.rglob("*") if each.is_file()}
    assert {name: after[name] for name in before} == before


def test_a_person_sees_how_to_fix_what_fails(isola: Isola, home: Path) -> None:
    (home / "config.yaml").write_text("judg: local\nisolation_s: never [/]\n")
    ran = isola("doctor")
    assert ran.code == 2
    assert "you   The configuration can be read: 2 to repair" in ran.out
    assert "fix:  ${EDITOR:-vi}" in ran.out
    assert "never [/]" in ran.out


def test_a_broken_configuration_hides_no_other_check(isola: Isola, home: Path) -> None:
    (home / "config.yaml").write_text("{")
    ran = isola("doctor", "--json")
    assert ran.code == 2
    assert entry(ran, "config")["status"] == "need_human"
    assert entry(ran, "store")["status"] == "pass"


def test_keys_and_themes_that_the_screen_would_refuse_are_named(isola: Isola, home: Path) -> None:
    (home / "config.yaml").write_text("theme: drak\nkeys: {why: ctrl+r}\n")
    found = entry(isola("doctor", "--json"), "config")
    assert found["status"] == "need_human"
    assert "both correct and why" in str(found["found"])
    assert "did you mean dark?" in str(found["found"])


def test_a_newer_or_foreign_or_damaged_database_fails(
    isola: Isola, home: Path, projects: None
) -> None:
    database = home / "isola.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    ran = isola("doctor", "--json")
    assert (ran.code, entry(ran, "store")["status"]) == (1, "fail")
    assert "newer version" in entry(ran, "store")["found"]
    database.write_bytes(b"no database at all" * 100)
    assert entry(isola("doctor", "--json"), "store")["status"] == "fail"


def test_an_endpoint_is_asked(isola: Isola, model: FakeModel) -> None:
    found = entry(isola("doctor", "--json"), "endpoint.harness")
    assert found["status"] == "pass"
    assert "it has fake-model" in found["found"]
    assert not model.requests


def test_an_endpoint_that_is_down_fails(isola: Isola, home: Path) -> None:
    with FakeModel() as gone:
        url = gone.url
    (home / "config.yaml").write_text(
        f"harness:\n  type: llm\n  base_url: {url}/v1\n  model: m\n  api_key_env: NO_SUCH_KEY\n"
    )
    ran = isola("doctor", "--json")
    assert ran.code == 1
    assert entry(ran, "endpoint.harness")["status"] == "fail"
    assert "NO_SUCH_KEY" in entry(ran, "keys")["found"]


@pytest.mark.parametrize(
    ("section", "check"),
    [
        ("type: claude\n  binary: no-such-program", "claude.default"),
        ("type: command\n  argv: [no-such-program, ask]", "backend.default"),
    ],
)
def test_a_program_that_is_not_there_fails(
    isola: Isola, home: Path, section: str, check: str
) -> None:
    (home / "config.yaml").write_text(f"harness:\n  {section}\n")
    found = entry(isola("doctor", "--json"), check)
    assert found["status"] == "fail"
    assert "no-such-program" in found["found"]


def test_two_projects_in_one_folder_need_a_person(
    isola: Isola, tmp_path: Path, projects: None
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    isola("projects", "edit", "billing", "--path", str(tmp_path))
    isola("projects", "edit", "search", "--path", str(inner))
    ran = isola("doctor", "--json")
    assert ran.code == 2
    assert entry(ran, "project-overlap")["status"] == "need_human"


def test_a_folder_that_is_gone_is_reported(isola: Isola, tmp_path: Path, projects: None) -> None:
    folder = tmp_path / "soon-gone"
    folder.mkdir()
    isola("projects", "edit", "billing", "--path", str(folder))
    folder.rmdir()
    ran = isola("doctor", "--json")
    assert entry(ran, "project-folders")["status"] == "fail"
    assert isola("recall", "billing", "anything").code == 0


@pytest.mark.parametrize("state", ["UNKNOWN", "FAILED"])
def test_what_waits_for_a_person_is_counted(
    isola: Isola, home: Path, projects: None, state: str
) -> None:
    isola("chat", "--text", "@billing one")
    with sqlite3.connect(home / "isola.db") as connection:
        connection.execute("UPDATE deliveries SET state = ?", (state,))
    connection.close()
    ran = isola("doctor", "--json")
    assert ran.code == 2
    assert entry(ran, "stuck")["status"] == "need_human"


def test_a_turn_of_a_dead_process_is_counted(isola: Isola, home: Path, projects: None) -> None:
    isola("chat", "--text", "@billing one")
    me = SystemProcesses(home).me()
    with sqlite3.connect(home / "isola.db") as connection:
        connection.execute("UPDATE deliveries SET state = 'WRITTEN'")
        connection.execute(
            "UPDATE leases SET released = 0, machine = ?, boot = ?, pid = ?, started = ?",
            (me.machine, me.boot, me.pid, me.started + 1),
        )
    connection.close()
    assert entry(isola("doctor", "--json"), "stuck")["status"] == "need_human"


def test_a_backend_that_is_not_configured_is_named(
    isola: Isola, home: Path, projects: None
) -> None:
    (home / "config.yaml").write_text("harnesses:\n  notes:\n    type: notebook\n")
    isola("projects", "edit", "billing", "--harness", "notes")
    assert isola("doctor").code == 0
    (home / "config.yaml").unlink()
    found = entry(isola("doctor", "--json"), "project-backends")
    assert (found["status"], "billing uses notes" in found["found"]) == ("fail", True)
