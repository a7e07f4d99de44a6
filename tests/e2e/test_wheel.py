"""The built wheel: whole, nothing of the workshop in it, and running where only it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from tests.e2e.conftest import Run

CHECKOUT = Path(__file__).parents[2]

PACKAGES = ("isola_core", "isola_harnesses", "isola_tui")

DATA = ("*.sql", "*.yaml", "*.toml", "*.tcss", "py.typed")
"""Files beside the code that the program reads when it runs."""


@pytest.fixture(scope="module")
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that --wheel names, or one built from this checkout."""
    named: Path | None = request.config.getoption("--wheel")
    if named:
        return named
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, CHECKOUT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = folder.glob("*.whl")
    return found


def test_it_holds_the_three_packages_and_nothing_of_the_workshop(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    (information,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {*PACKAGES, information}


def test_it_holds_every_file_of_the_packages(wheel: Path) -> None:
    roots = [CHECKOUT / "core", CHECKOUT / "harnesses", CHECKOUT]
    expected = {
        path.relative_to(root).as_posix()
        for root in roots
        for package in PACKAGES
        for pattern in ("*.py", *DATA)
        for path in (root / package).rglob(pattern)
    }
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    assert expected <= held
    assert any(name.endswith(".sql") for name in held)


def test_its_metadata_names_command_licence_and_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (information,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        metadata = message_from_string(archive.read(f"{information}/METADATA").decode())
        entry_points = archive.read(f"{information}/entry_points.txt").decode()
    assert metadata["Name"] == "isola-tui"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "dev" in metadata.get_all("Provides-Extra", [])
    assert f"{information}/licenses/LICENSE" in names
    assert "isola = isola_tui.__main__:main" in entry_points
    assert "[isola.harnesses]" in entry_points


def test_the_program_knows_the_version_of_its_distribution(isola: Run, isola_python: Path) -> None:
    script = "from importlib.metadata import version; print(version('isola-tui'))"
    installed = subprocess.run(
        [isola_python, "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert isola("--version").stdout == f"isola {installed}"


def test_the_program_explains_itself(isola: Run) -> None:
    answer = isola("--help")
    assert answer.returncode == 0
    assert "chat" in answer.stdout
    assert isola("frobnicate").returncode == 64


@pytest.mark.wheel
def test_the_clean_environment_has_the_wheel_and_no_tools_of_ours(
    isola_python: Path, outside_environment: dict[str, str], tmp_path: Path
) -> None:
    """What the program needs must be declared: no test tool may stand in for it."""
    script = """if True:
        import importlib, importlib.util, json, sys
        places = {each: importlib.import_module(each).__file__ for each in sys.argv[1:]}
        tools = [each for each in ("pytest", "hypothesis", "hatchling", "build", "pyte")
                 if importlib.util.find_spec(each)]
        print(json.dumps([places, tools]))
    """
    places, tools = json.loads(
        subprocess.run(
            [isola_python, "-c", script, *PACKAGES],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env=outside_environment,
            cwd=tmp_path,
        ).stdout
    )
    assert tools == []
    environment = isola_python.parents[1]
    assert all(Path(place).is_relative_to(environment) for place in places.values()), places


@pytest.mark.wheel
def test_every_module_of_the_wheel_can_be_imported_there(
    wheel: Path, isola_python: Path, outside_environment: dict[str, str], tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        modules = sorted(
            name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for name in archive.namelist()
            if name.endswith(".py") and "/conformance" not in name  # those need pytest
        )
    script = "import importlib, sys; [importlib.import_module(each) for each in sys.argv[1:]]"
    answer = subprocess.run(
        [isola_python, "-c", script, *modules],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=outside_environment,
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr
