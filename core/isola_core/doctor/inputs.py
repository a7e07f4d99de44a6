"""What the core's checks look at, as the front end hands it over."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isola_core.doctor.check import Supplier


@dataclass(frozen=True, slots=True)
class SqliteReport:
    """The SQLite library that Python brings. Versions such as `3.45.1`."""

    version: str
    minimum: str
    fts5: bool


@dataclass(frozen=True, slots=True)
class StoreReport:
    """The database: `schema` None where there is none yet; `damage` is what quick_check says."""

    schema: int | None
    newest: int
    damage: str = ""


@dataclass(frozen=True, slots=True)
class StuckReport:
    """What waits for somebody: counts of deliveries and tasks."""

    unknown_deliveries: int = 0
    failed_deliveries: int = 0
    failed_tasks: int = 0
    overdue: int = 0
    """Deadlines and leases that passed and that a tick would finish."""


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    """A project that has a folder."""

    id: str
    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where the program would draw. `attached` False: output goes to a pipe, nothing is drawn."""

    attached: bool
    term: str
    colorterm: str
    encoding: str

    @classmethod
    def of_this_process(cls) -> Terminal:
        """As this process sees it."""
        return cls(
            attached=sys.stdin.isatty() and sys.stdout.isatty(),
            term=os.environ.get("TERM", ""),
            colorterm=os.environ.get("COLORTERM", ""),
            encoding=sys.stdout.encoding or "",
        )


@dataclass(frozen=True, slots=True)
class DoctorInputs:
    """What the core's checks look at. The front end fills it in.

    `config_problems` lists the lines of a `ConfigError` (none: it is fine). `key_names` maps the
    environment variables of `api_key_env` to the sections that name them. `endpoints` maps a
    section to a probe that says what answered, or raises.
    """

    config_file: Path
    data_dir: Path
    database: Path
    terminal: Terminal
    environ: Mapping[str, str]
    config_problems: Supplier[Sequence[str]]
    key_names: Supplier[Mapping[str, str]]
    projects: Supplier[Sequence[ProjectFolder]]
    sqlite: Supplier[SqliteReport]
    store: Supplier[StoreReport]
    stuck: Supplier[StuckReport]
    endpoints: Mapping[str, Supplier[str]] = field(default_factory=dict)
