"""`isola projects`: add, list, edit, retire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.cli.conftest import Isola

SHAPE = {"id", "name", "description", "aliases", "path", "harness", "protected", "retired"}


def test_a_project_is_added_with_everything(isola: Isola, tmp_path: Path) -> None:
    ran = isola(
        *(
            "projects",
            "add",
            "Billing Service",
            "--description",
            "invoices",
            "--path",
            str(tmp_path),
        ),
        *("--alias", "bill", "--alias", "账单", "--protected", "--json"),
    )
    assert ran.code == 0
    assert ran.json["result"] == "added"
    project = ran.json["project"]
    assert project.keys() == SHAPE
    assert project["id"] == "billing_service"
    assert set(project["aliases"]) == {"bill", "账单"}
    assert (project["path"], project["protected"]) == (str(tmp_path.resolve()), True)


def test_the_folder_gives_the_name(isola: Isola, tmp_path: Path) -> None:
    folder = tmp_path / "my-shop"
    folder.mkdir()
    assert isola("projects", "add", "--path", str(folder), "--json").json["project"]["name"] == (
        "my-shop"
    )


def test_a_name_is_needed_and_given_once(isola: Isola) -> None:
    assert isola("projects", "add").code == 64
    assert isola("projects", "add", "a", "--name", "b").code == 64


@pytest.mark.parametrize("name", ["billing", "BILLING ", "Bill-ing", "Ｂｉｌｌｉｎｇ"])
def test_the_same_name_is_refused(isola: Isola, projects: None, name: str) -> None:
    ran = isola("projects", "add", name, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "conflict")
    assert ran.json["error"]["details"]["existing"] == "billing"


def test_a_missing_folder_and_an_unknown_backend_are_refused(isola: Isola, tmp_path: Path) -> None:
    ran = isola("projects", "add", "x", "--path", str(tmp_path / "no"), "--json")
    assert ran.json["error"]["code"] == "invalid_input"
    ran = isola("projects", "add", "x", "--harness", "no", "--json")
    assert ran.json["error"]["code"] == "config"
    assert isola("projects", "list", "--json").json == {"projects": []}


def test_names_of_any_kind_are_shown_on_one_line(isola: Isola) -> None:
    isola("projects", "add", "[/red] 日本\x1b[2J語\u202e", "--id", "odd")
    listed = isola("projects", "list").out
    assert "[/red] 日本[2J語" in listed
    assert "\x1b" not in listed
    assert "\u202e" not in listed


def test_a_project_is_changed_field_by_field(isola: Isola, projects: None) -> None:
    edit = ("projects", "edit", "billing", "--json")
    assert isola(*edit, "--alias", "a", "--alias", "b").json["project"]["aliases"] == ["a", "b"]
    assert isola(*edit, "--add-alias", "c").json["project"]["aliases"] == ["a", "b", "c"]
    assert isola(*edit, "--no-aliases").json["project"]["aliases"] == []
    changed = isola(*edit, "--name", "Invoices", "--description", "new", "--protected").json
    assert changed["result"] == "changed"
    assert changed["project"]["id"] == "billing"
    assert (changed["project"]["name"], changed["project"]["protected"]) == ("Invoices", True)
    assert isola("projects", "edit", "invoices", "--json").json["result"] == "as it was"


def test_a_retired_project_gets_nothing_until_it_is_restored(isola: Isola, projects: None) -> None:
    assert isola("projects", "retire", "billing").out == "retired: billing (billing)\n"
    assert [each["id"] for each in isola("projects", "list", "--json").json["projects"]] == [
        "search"
    ]
    assert len(isola("projects", "list", "--all", "--json").json["projects"]) == 2
    ran = isola("chat", "--project", "billing", "--text", "x", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "conflict")
    assert "isola projects edit billing --restore" in ran.json["error"]["message"]
    isola("projects", "edit", "billing", "--restore")
    assert isola("chat", "--project", "billing", "--text", "x").code == 0


def test_a_protected_project_is_never_chosen_by_itself(isola: Isola, projects: None) -> None:
    isola("projects", "edit", "billing", "--protected")
    ran = isola("chat", "--text", "pay the billing invoices", "--json")
    assert ran.json["status"] == "needs_confirmation"
    assert isola("chat", "--text", "@billing pay", "--json").json["status"] == "answered"


def test_what_the_configuration_sets_is_changed_there(isola: Isola, home: Path) -> None:
    (home / "config.yaml").write_text("projects:\n  - id: shop\n    name: Shop\n")
    ran = isola("projects", "edit", "shop", "--name", "Store", "--json")
    assert "the configuration sets shop too" in ran.err
    assert isola("projects", "list", "--json").json["projects"][0]["name"] == "Shop"


def test_an_unknown_project_is_refused_with_the_nearest(isola: Isola, projects: None) -> None:
    ran = isola("projects", "edit", "biling", "--name", "x", "--json")
    assert ran.json["error"]["details"]["candidates"] == ["billing"]
