"""Readiness checks as data: what was found, the command that checks it, the command that fixes it.

Checks only look; none changes anything. What they need from other parts (the database, the
configuration, an endpoint) comes in as callables, so that a part that is broken breaks one check:
a check that crashes is a failed check that says so.
"""

from __future__ import annotations

import shlex

from isola_core.doctor.check import (
    Check,
    CheckResult,
    CheckStatus,
    Outcome,
    Supplier,
    answer,
    exit_code,
    run_check,
    run_checks,
)
from isola_core.doctor.inputs import (
    DoctorInputs,
    ProjectFolder,
    SqliteReport,
    StoreReport,
    StuckReport,
    Terminal,
)
from isola_core.doctor.looks import (
    look_at_configuration,
    look_at_data_folder,
    look_at_disk,
    look_at_folders,
    look_at_keys,
    look_at_overlaps,
    look_at_python,
    look_at_sqlite,
    look_at_store,
    look_at_stuck,
    look_at_terminal,
    passed,
)
from isola_core.errors import IsolaError, StoreTooNew

__all__ = [
    "Check",
    "CheckResult",
    "CheckStatus",
    "DoctorInputs",
    "Outcome",
    "ProjectFolder",
    "SqliteReport",
    "StoreReport",
    "StuckReport",
    "Terminal",
    "core_checks",
    "exit_code",
    "run_check",
    "run_checks",
]


def core_checks(inputs: DoctorInputs) -> tuple[Check, ...]:
    """The checks of the core, in the order in which a person would repair things."""
    config, database = shlex.quote(str(inputs.config_file)), shlex.quote(str(inputs.database))
    data = shlex.quote(str(inputs.data_dir))

    async def sqlite() -> Outcome:
        return look_at_sqlite(await answer(inputs.sqlite))

    async def configuration() -> Outcome:
        problems = await answer(inputs.config_problems)
        return look_at_configuration(inputs.config_file, problems)

    async def store() -> Outcome:
        try:
            return look_at_store(await answer(inputs.store), inputs.database)
        except StoreTooNew as error:
            return Outcome(CheckStatus.FAIL, error.message, "pip install --upgrade isola-tui")

    async def stuck() -> Outcome:
        return look_at_stuck(await answer(inputs.stuck))

    async def folders() -> Outcome:
        return look_at_folders(await answer(inputs.projects))

    async def shared() -> Outcome:
        return look_at_overlaps(await answer(inputs.projects))

    async def keys() -> Outcome:
        return look_at_keys(await answer(inputs.key_names), inputs.environ)

    return (
        Check("python", "Python is new enough", look_at_python, "python3 --version"),
        Check("sqlite", "SQLite has full text search", sqlite,
              "python3 -c 'import sqlite3; print(sqlite3.sqlite_version)'"),
        Check("config", "The configuration can be read", configuration, f"cat {config}"),
        Check("data-folder", "The data folder is private and writable",
              lambda: look_at_data_folder(inputs.data_dir, inputs.database), f"ls -ld {data}"),
        Check("disk", "There is room on the disk", lambda: look_at_disk(inputs.data_dir),
              f"df -h {data}"),
        Check("store", "The database opens and is whole", store, f"ls -l {database}"),
        Check("stuck", "No message and no task is stuck", stuck, "isola decisions"),
        Check("project-folders", "The projects' folders are there", folders,
              "isola projects list"),
        Check("project-overlap", "No two projects share a folder", shared, "isola projects list"),
        Check("keys", "The keys that the configuration names are set", keys, f"grep _env {config}"),
        *(_endpoint(section, probe, config) for section, probe in inputs.endpoints.items()),
        Check("terminal", "The terminal can show the program",
              lambda: look_at_terminal(inputs.terminal), "echo $TERM $COLORTERM $LANG"),
    )  # fmt: skip


def _endpoint(section: str, probe: Supplier[str], config: str) -> Check:
    async def run() -> Outcome:
        try:
            return passed(await answer(probe))
        except (IsolaError, OSError) as error:
            said = error.message if isinstance(error, IsolaError) else str(error)
            return Outcome(CheckStatus.FAIL, said, f"${{EDITOR:-vi}} {config}")

    return Check(f"endpoint.{section}", f"The endpoint of {section} answers", run)
