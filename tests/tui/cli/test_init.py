"""`isola init`: finds repositories within bounds, asks, writes a configuration that loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isola_core.config import load_config
from isola_core.errors import InvalidInput
from isola_tui.cli import repositories
from isola_tui.cli.init import picked
from isola_tui.cli.repositories import description_of, find_repositories
from tests.tui.cli.conftest import Isola


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with five repositories, a worktree, and things that are none."""
    for name in ("shop", "tools/api", "old/api", "账单", "deep/a/b/c"):
        (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "inner" / ".git").mkdir(parents=True)
    (tmp_path / "node_modules" / "dep" / ".git").mkdir(parents=True)
    (tmp_path / ".hidden" / ".git").mkdir(parents=True)
    (tmp_path / "worktree").mkdir()
    (tmp_path / "worktree" / ".git").write_text("gitdir: ../shop/.git/worktrees/x\n")
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "shop" / "README.md").write_text(
        "# Shop\n\n[![badge](x)](y)\n\nSells garden tools to dwarfs.\n"
    )
    return tmp_path


def test_repositories_are_found_and_nothing_inside_of_them(work: Path) -> None:
    found = find_repositories(work)
    names = [each.relative_to(work).as_posix() for each in found.folders]
    assert names == ["deep/a/b/c", "old/api", "shop", "tools/api", "账单"]
    assert not found.cut


def test_the_search_is_bounded(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repositories, "DEPTH", 1)
    names = [each.name for each in find_repositories(work).folders]
    assert names == ["shop", "账单"]
    monkeypatch.setattr(repositories, "FOUND", 1)
    assert find_repositories(work).cut


def test_everything_is_taken_without_questions(isola: Isola, work: Path, home: Path) -> None:
    ran = isola("init", "--path", str(work), "--yes", "--json")
    assert ran.code == 0
    assert ran.json["config"] == str(home / "config.yaml")
    ids = [each["id"] for each in ran.json["projects"]]
    assert len(ids) == len(set(ids)) == 5
    config = load_config(home / "config.yaml")
    assert {each.path for each in config.projects} == set(find_repositories(work).folders)
    shop = next(each for each in config.projects if each.id == "shop")
    assert shop.description == "Sells garden tools to dwarfs."
    listed = isola("projects", "list", "--json").json["projects"]
    assert {each["id"] for each in listed} == set(ids)
    assert isola("chat", "--text", "@shop hello", "--json").json["status"] == "answered"


def test_a_person_picks(isola: Isola, work: Path, home: Path) -> None:
    ran = isola("init", "--path", str(work), stdin=b"n\n7\n2-3, 5\n")
    assert ran.code == 0, ran.err
    assert "'7' is none of 1 to 5" in ran.err
    names = {each.path.name for each in load_config(home / "config.yaml").projects if each.path}
    assert names == {"api", "shop", "账单"}


def test_an_existing_configuration_is_kept_and_a_replaced_one_copied(
    isola: Isola, work: Path, home: Path
) -> None:
    file = home / "config.yaml"
    file.write_text("judge: manual\n")
    ran = isola("init", "--path", str(work), "--yes", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "conflict")
    assert file.read_text() == "judge: manual\n"
    assert isola("init", "--path", str(work), "--yes", "--force").code == 0
    assert (home / "config.yaml.old").read_text() == "judge: manual\n"
    assert "projects:" in file.read_text()


def test_another_place_is_named_by_config(isola: Isola, work: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    ran = isola("--config", str(file), "init", "--path", str(work), "--yes")
    assert ran.code == 0
    assert file.stat().st_mode & 0o777 == 0o600


def test_registered_projects_keep_their_names(isola: Isola, work: Path) -> None:
    isola("projects", "add", "Der Laden", "--path", str(work / "shop"))
    isola("projects", "add", "api")
    isola("init", "--path", str(work), "--yes")
    listed = {
        each["path"]: each["name"]
        for each in isola("projects", "list", "--json").json["projects"]
        if each["path"]
    }
    assert listed[str(work / "shop")] == "Der Laden"
    assert listed[str(work / "tools/api")] != "api"
    assert len(listed) == 5


def test_folders_of_agents_are_offered_with_consent_only(
    isola: Isola, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = tmp_path / "used"
    used.mkdir()
    records = tmp_path / "claude" / "projects" / "-used"
    records.mkdir(parents=True)
    (records / "one.jsonl").write_text(
        json.dumps({"type": "user", "cwd": str(used), "sessionId": "one"}) + "\n"
    )
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    empty = tmp_path / "empty"
    empty.mkdir()
    without = isola("init", "--path", str(empty), "--yes", "--json")
    assert without.json["projects"] == []
    given = isola("init", "--path", str(empty), "--yes", "--past", "--force", "--json")
    assert [each["path"] for each in given.json["projects"]] == [str(used)]


def test_a_readme_gives_no_credential_away(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "a1B2c3D4e5" * 5
    (tmp_path / "README.md").write_text(f"Log in with the key {secret} please\n")
    assert description_of(tmp_path) == ""
    assert description_of(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("said", "numbers"),
    [("all", [1, 2, 3]), ("none", []), ("", []), ("2", [2]), ("3,1-2", [3, 1, 2]), ("1 1", [1])],
)
def test_an_answer_picks(said: str, numbers: list[int]) -> None:
    assert picked(said, 3) == numbers


@pytest.mark.parametrize("said", ["0", "4", "2-1", "1-4", "a", "1,x", "-1", "９", "1" * 5000])
def test_another_answer_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput):
        picked(said, 3)
