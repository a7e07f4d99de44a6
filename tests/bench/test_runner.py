"""The bench runner: what it prints, that it hides no missed target, that benches are found."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import start
from tests.bench.__main__ import discover, main
from tests.bench.figures import Figures, Target

TESTS = Path(__file__).parent.parent


def impossible(data: Path | None) -> Figures:
    return Figures({"ratio": 2.5, "data": str(data)}, {"ratio": Target(2.5, 0.0)})


def test_a_missed_target_is_printed_as_missed_and_ends_with_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["impossible", "--json"], {"impossible": impossible}) == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "impossible",
        "figures": {"ratio": 2.5, "data": "None"},
        "targets": {"ratio": {"value": 2.5, "limit": 0.0, "ok": False}},
        "ok": False,
    }
    assert main(["impossible"], {"impossible": impossible}) == 0
    assert "2.5 (at most 0: MISSED)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "ok"),
    [
        (Target(3.0, 3.0), True),
        (Target(3.1, 3.0), False),
        (Target(0.9, 0.95, at_least=True), False),
        (Target(0.95, 0.95, at_least=True), True),
        (Target(math.nan, 3.0), False),
        (Target(math.nan, 3.0, at_least=True), False),
    ],
)
def test_a_target_is_held_in_its_direction(target: Target, ok: bool) -> None:
    assert target.ok is ok


def test_the_data_folder_comes_from_the_option_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ISOLA_BENCH_DATA", str(tmp_path))
    assert main(["impossible", "--json"], {"impossible": impossible}) == 0
    assert json.loads(capsys.readouterr().out)["figures"]["data"] == str(tmp_path)
    assert main(["impossible", "--data", str(TESTS)], {"impossible": impossible}) == 0
    assert str(TESTS) in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["unknown"], ["impossible", "--data", "/nowhere"], ["--frobnicate"]]
)
def test_wrong_usage_ends_with_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments, {"impossible": impossible}) == 64
    assert capsys.readouterr().err.startswith("tests.bench: ")


def test_every_bench_is_found_and_says_what_it_measures() -> None:
    assert "start" in discover()
    listed = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--list"],
        cwd=TESTS.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(discover())
    assert all(len(line.split()) > 2 for line in listed)


def test_the_version_imports_three_modules_of_ours_at_most() -> None:
    result = start.run(None, runs=2, frames=1)
    assert result.figures["modules_of_isola"] in {2, 3}
    assert result.targets["ratio"].value > 0
