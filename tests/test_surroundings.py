"""The promises of conftest.py, kept: pinned environment, no process left behind, no silent skip."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")


def run_pytest(folder: Path, body: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `body` as a test file under a copy of our conftest, less patient."""
    text = CONFTEST.read_text()
    assert "PATIENCE_S = 5.0" in text
    (folder / "conftest.py").write_text(text.replace("PATIENCE_S = 5.0", "PATIENCE_S = 0.3"))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    real_cli\n    wheel\n")
    (folder / "test_it.py").write_text(textwrap.dedent(body))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(folder)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_each_test_has_a_home_of_its_own_and_nothing_of_the_persons() -> None:
    assert Path.home() == Path(os.environ["HOME"])
    assert not list(Path.home().iterdir())
    assert Path(os.environ["ISOLA_HOME"]).parent == Path.home()
    assert time.tzname == ("UTC", "UTC")
    assert "COLUMNS" not in os.environ
    assert not [name for name in os.environ if name.startswith("XDG_")]


def test_a_process_that_outlives_the_tests_fails_the_run_and_names_its_test(
    tmp_path: Path,
) -> None:
    body = """
        import subprocess, sys

        def test_that_leaves_one():
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    """
    result = run_pytest(tmp_path, body)
    assert result.returncode == 1
    assert "processes outlived the tests" in result.stdout
    assert "test_that_leaves_one" in result.stdout


def test_a_detached_process_is_found_by_its_home(tmp_path: Path) -> None:
    body = """
        import subprocess, sys

        def test_that_detaches():
            child = "import time; time.sleep(60)"
            parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{child}'])"
            subprocess.run([sys.executable, "-c", parent], start_new_session=True)
    """
    result = run_pytest(tmp_path, body)
    assert result.returncode == 1
    assert "test_that_detaches" in result.stdout


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--no-skips",), 1)])
def test_a_skip_is_named_and_fails_only_a_run_that_must_be_whole(
    tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    body = """
        import pytest

        @pytest.mark.skip(reason="needs a moon")
        def test_skipped(): ...

        def test_passes(): ...
    """
    result = run_pytest(tmp_path, body, *options)
    assert result.returncode == code
    assert "1 test: needs a moon" in result.stdout


def test_what_needs_a_real_agent_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    body = """
        import pytest

        @pytest.mark.real_cli
        def test_real(): ...

        def test_passes(): ...
    """
    assert "1 passed, 1 deselected" in run_pytest(tmp_path, body, "--no-skips").stdout
    assert "2 passed" in run_pytest(tmp_path, body, "--real-cli").stdout
