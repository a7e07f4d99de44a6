"""scripts/run and scripts/test: one set-up, whoever starts first; clear words when it cannot be.

The project under set-up is a tiny one with its build backend inside, so nothing is fetched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from scripts.environment import STAMP, SetupError, prepare

SCRIPTS = Path(__file__).parents[2] / "scripts"

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
"""

BACKEND = r"""
import pathlib, zipfile

FILES = {
    "tiny-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n",
    "tiny-1.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    "tiny-1.dist-info/entry_points.txt": "[console_scripts]\nisola = tiny:main\n",
    "tiny-1.dist-info/RECORD": "",
    "tiny.py": "import sys\ndef main():\n    print(sys.argv[1:])\n    return 3\n",
}

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with pathlib.Path("builds").open("a") as builds:
        builds.write("built\n")
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        for path, text in FILES.items():
            wheel.writestr(path, text)
    return name

build_wheel = build_editable
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a tiny project with our scripts, in a folder with a space in its name."""
    root = tmp_path / "a checkout"
    shutil.copytree(SCRIPTS, root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    return root


def builds(checkout: Path) -> int:
    return len((checkout / "builds").read_text().splitlines())


def start(checkout: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "scripts/run", *arguments],
        cwd=checkout,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PIP_NO_INDEX": "1"},
    )


def test_two_at_once_set_up_once_and_both_go_on_as_the_program(checkout: Path) -> None:
    both = [start(checkout, "chat", "--text", "a b"), start(checkout, "doctor")]
    answers = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [3, 3], answers
    assert [out for out, _ in answers] == ["['chat', '--text', 'a b']\n", "['doctor']\n"]
    assert builds(checkout) == 1

    again = start(checkout)
    assert again.communicate(timeout=60) == ("[]\n", "")
    assert builds(checkout) == 1


def test_a_changed_pyproject_is_installed_and_an_interrupted_set_up_is_made_anew(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = prepare(".venv", root=checkout)
    kept = place / "kept"
    kept.touch()

    (checkout / "pyproject.toml").write_text(PYPROJECT + 'description = "changed"\n')
    prepare(".venv", root=checkout)
    assert builds(checkout) == 2
    assert kept.exists()
    assert "pyproject.toml changed" in capsys.readouterr().err

    stamp = (place / STAMP).read_text()
    (place / STAMP).write_text(stamp.replace("true", "false"))
    prepare(".venv", root=checkout)
    assert builds(checkout) == 3
    assert not kept.exists()


def test_an_environment_of_somebody_elses_is_left_alone(checkout: Path) -> None:
    theirs = checkout / ".venv" / "theirs"
    theirs.parent.mkdir()
    theirs.touch()
    with pytest.raises(SetupError, match="was not made by this script"):
        prepare(".venv", root=checkout)
    assert theirs.exists()


def test_a_python_without_ensurepip_is_told_what_to_install(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SetupError, match="apt install python3-venv"):
        prepare(".venv", root=checkout)
    assert not (checkout / ".venv").exists()


def test_a_package_index_out_of_reach_is_said_and_the_next_try_goes_on(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needy = PYPROJECT.replace("requires = []", 'requires = ["no-such-package-here"]')
    (checkout / "pyproject.toml").write_text(needy)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    for name in ("PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SetupError, match="package index cannot be reached"):
        prepare(".venv", root=checkout)

    (checkout / "pyproject.toml").write_text(PYPROJECT)
    assert (prepare(".venv", root=checkout) / "bin" / "isola").exists()


def test_a_folder_that_cannot_be_written_is_said(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / ".venv.lock").mkdir()
    with pytest.raises(SetupError, match="cannot be written"):
        prepare(".venv", root=checkout)


@pytest.mark.parametrize("script", ["run", "test"])
def test_an_old_python_is_told_so(checkout: Path, script: str) -> None:
    program = textwrap.dedent(f"""
        import runpy, sys
        sys.version_info = (3, 9, 2)
        sys.version = "3.9.2 (main)"
        runpy.run_path("scripts/{script}", run_name="__main__")
    """)
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=checkout,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 1
    assert "needs Python 3.11 or newer" in answer.stderr
    assert f"python3.12 scripts/{script}" in answer.stderr
