"""Harnesses are found by type; a broken plugin is named and takes nothing down."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from isola_core.clock import SystemClock
from isola_core.errors import ConfigError
from isola_harnesses.conformance import MemoryHistory
from isola_harnesses.notebook import NotebookHarness
from isola_harnesses.registry import (
    HarnessServices,
    create_harness,
    inspect_types,
    known_types,
)

PLUGIN = """
from isola_harnesses.notebook import NotebookHarness

def create(settings, services):
    if settings != {"colour": "blue"}:
        raise ValueError("colour: blue is the only one")
    return NotebookHarness(services)

def wrong(settings, services):
    return object()

number = 7
"""


@pytest.fixture
def services(tmp_path: Path) -> HarnessServices:
    return HarnessServices(MemoryHistory(), SystemClock(), {}, tmp_path)


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with a good plugin and some broken ones, as pip would install it."""
    (tmp_path / "birdhouse.py").write_text(PLUGIN)
    (tmp_path / "birdhouse_broken.py").write_text("raise SystemExit('no licence')")
    info = tmp_path / "birdhouse-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: birdhouse\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[isola.harnesses]\n"
        "bird = birdhouse:create\n"
        "leaving = birdhouse_broken:create\n"
        "missing = birdhouse_nowhere:create\n"
        "wrong = birdhouse:wrong\n"
        "number = birdhouse:number\n"
        "notebook = birdhouse:wrong\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


def test_an_unknown_type_lists_the_known_ones(services: HarnessServices) -> None:
    with pytest.raises(ConfigError, match=r"known are .*llm, notebook.*Did you mean notebook\?"):
        create_harness({"type": "notebok"}, "default", services)
    with pytest.raises(ConfigError, match="has no type"):
        create_harness({}, "default", services)


def test_wrong_settings_are_named_each(services: HarnessServices) -> None:
    settings: Mapping[str, object] = {"type": "llm", "timeout_s": "long", "modle": "x"}
    with pytest.raises(ConfigError) as refused:
        create_harness(settings, "fast", services)
    assert str(refused.value).startswith("Harness fast: ")
    assert refused.value.details["problems"] == [
        "modle: there is no such setting, did you mean model?",
        "base_url: it is needed and missing",
        "model: it is needed and missing",
        "timeout_s: Expected `float`, got `str`",
    ]


@pytest.mark.usefixtures("plugins")
def test_a_plugin_is_used_by_its_type(services: HarnessServices) -> None:
    assert "bird" in known_types()
    made = create_harness({"type": "bird", "colour": "blue"}, "default", services)
    assert isinstance(made, NotebookHarness)


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("bird", "failed to start: ValueError: colour"),
        ("leaving", "cannot be imported: SystemExit: no licence"),
        ("missing", "cannot be imported: ModuleNotFoundError"),
        ("wrong", "lacks a method"),
        ("number", "is not a function"),
    ],
)
def test_a_broken_plugin_is_named(services: HarnessServices, kind: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"type '{kind}' \(birdhouse\) is broken: .*{reason}"):
        create_harness({"type": kind}, "default", services)


@pytest.mark.usefixtures("plugins")
def test_a_plugin_never_takes_over_a_built_in_name(services: HarnessServices) -> None:
    assert isinstance(create_harness({"type": "notebook"}, "x", services), NotebookHarness)


@pytest.mark.usefixtures("plugins")
def test_inspection_tells_the_broken_from_the_good() -> None:
    found = {each.name: each for each in inspect_types()}
    assert (found["bird"].source, found["bird"].problem) == ("birdhouse", "")
    assert "no licence" in found["leaving"].problem
    assert (found["llm"].source, found["llm"].problem) == ("built in", "")


def test_a_checkout_without_metadata_finds_the_built_ins() -> None:
    root = Path(__file__).parents[2]
    script = (
        "import importlib.metadata as m; m.entry_points = lambda **_: []\n"
        "from isola_harnesses import registry\n"
        "assert {'command', 'llm', 'notebook'} <= set(registry.known_types())\n"
        "import sys; assert 'httpx' not in sys.modules\n"
    )
    path = os.pathsep.join([str(root / "core"), str(root / "harnesses")])
    subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": path}, check=True)
