"""What it costs to accept, attribute and persist one message, beside its rows saved one by one.

The store holds 50 projects and 100,000 messages. Both sides write the same rows with
`synchronous=FULL` into the same kind of database on the same disk, taking turns; the baseline
commits each statement by itself, as code without use-case transactions does.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from isola_core.attribution.router import Router
from isola_core.clock import RandomIds, SystemClock
from isola_core.projects import NewProject, Projects
from isola_core.service.delegated import DelegatedService, Incoming
from isola_core.service.settings import Core, Settings, Vault, ensure_owner
from isola_core.store.sqlite import SqliteStore
from isola_core.store.transaction import Transaction
from tests.bench.figures import Figures, Target

PROJECTS: Final = 50
STORED: Final = 100_000
MEASURED: Final = 400
MOST_OF_BASELINE: Final = 0.6
MOST_TRANSACTIONS: Final = 2


def run(data: Path | None) -> Figures:
    """Measure in a temporary folder. Needs no data."""
    folder = Path(tempfile.mkdtemp(prefix="isola-bench-"))
    try:
        return asyncio.run(_measure(folder))
    finally:
        shutil.rmtree(folder)


async def _measure(folder: Path) -> Figures:
    store = await SqliteStore.open(folder / "data" / "isola.db", SystemClock())
    try:
        service = await _filled(store)
        await store.read(lambda tx: None)
        baseline = _Baseline(folder / "data" / "baseline.db", store.path)
        try:
            return await _take_turns(store, service, baseline)
        finally:
            baseline.close()
    finally:
        await store.close()


async def _take_turns(
    store: SqliteStore, service: DelegatedService, baseline: _Baseline
) -> Figures:
    ours: list[float] = []
    theirs: list[float] = []
    statements: list[tuple[str, tuple[object, ...]]] = []
    with _recorded(statements):
        await service.accept(_message(0))
        await service.accept(_message(1))
        statements.clear()
        await service.accept(_message(2))
        pattern = [each for each in statements if each[0].lstrip().startswith(("INSERT", "UPDATE"))]
        all_statements = len(statements)
    before = store.transactions
    for number in range(MEASURED):
        start = time.perf_counter()
        accepted = await service.accept(_message(number + 3))
        ours.append(time.perf_counter() - start)
        assert accepted.decisions[0].project is not None
        start = time.perf_counter()
        baseline.save(pattern, number)
        theirs.append(time.perf_counter() - start)
    transactions = (store.transactions - before) / MEASURED
    ratio = statistics.median(ours) / statistics.median(theirs)
    (synchronous,) = await store.read(lambda tx: tx.all("PRAGMA synchronous"))
    return Figures(
        figures={
            "messages_stored": STORED,
            "projects": PROJECTS,
            "messages_measured": MEASURED,
            "p50_ms": statistics.median(ours) * 1000,
            "p99_ms": statistics.quantiles(ours, n=100)[98] * 1000,
            "baseline_p50_ms": statistics.median(theirs) * 1000,
            "baseline_p99_ms": statistics.quantiles(theirs, n=100)[98] * 1000,
            "p50_of_baseline": ratio,
            "transactions_a_message": transactions,
            "statements_a_message": all_statements,
            "rows_written_a_message": len(pattern),
            "synchronous_full": int(synchronous["synchronous"] == 2),
        },
        targets={
            "p50_of_baseline": Target(ratio, MOST_OF_BASELINE),
            "transactions_a_message": Target(transactions, MOST_TRANSACTIONS),
            "synchronous_full": Target(float(synchronous["synchronous"] == 2), 1, at_least=True),
        },
    )


def _message(number: int) -> Incoming:
    project = number % PROJECTS
    text = f"@project{project:02d} look at the {number}th report about topic {number * 7 % 97}"
    return Incoming(f"conversation-{number % 20}", text)


async def _filled(store: SqliteStore) -> DelegatedService:
    ids = RandomIds()
    owner = await ensure_owner(store, ids, "machine", "bench")
    core = Core(store, owner, "machine", Settings(), ids, Vault(), lambda _: "notebook")
    projects = Projects(store, owner.id, owner.label)
    for number in range(PROJECTS):
        name = f"project{number:02d}"
        await projects.add(NewProject(name, f"the {number}th project about topic {number}"))
    service = DelegatedService(core, Router())
    for number in range(PROJECTS):
        await service.accept(_message(number))
    await store.write(lambda tx: _multiply(tx, owner.id))
    return service


def _multiply(tx: Transaction, owner: str) -> None:
    """Fill up to 100,000 stored, decided, answered messages."""
    numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {STORED})"
    tx.run(
        f"INSERT INTO messages (id, owner, conversation, text, created) {numbers} "
        "SELECT 'm-old' || i, ?, 'conversation-' || (i % 200), "
        "'an old message about topic ' || (i % 97), 1000 + i FROM n",
        owner,
    )
    tx.run(
        f"INSERT INTO decisions (id, owner, message, mode, state, project, explanation, weak_label, "
        f"created, updated) {numbers} SELECT 'd-old' || i, ?, 'm-old' || i, 'delegated', "
        '\'COMMITTED\', printf(\'project%02d\', i % 50), \'{"stage":"explicit","confidence":1.0,'
        '"reason":""}\', 1, 1000 + i, 1000 + i FROM n',
        owner,
    )
    tx.run(
        "INSERT INTO deliveries (id, decision, session, attempt, state, created, updated) "
        "SELECT 'l' || d.id, d.id, s.id, 1, 'ANSWERED', d.created, d.created "
        "FROM decisions AS d JOIN sessions AS s ON s.project = d.project WHERE d.id LIKE 'd-old%'"
    )


class _Baseline:
    """The same schema with the same content; each statement is its own transaction."""

    def __init__(self, path: Path, like: Path) -> None:
        source = sqlite3.connect(like)
        self._connection = sqlite3.connect(path, isolation_level=None)
        source.backup(self._connection)
        source.close()
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")

    def save(self, pattern: list[tuple[str, tuple[object, ...]]], number: int) -> None:
        """Repeat the statements of one message with ids of their own."""
        for sql, parameters in pattern:
            self._connection.execute(sql, [_renamed(each, number) for each in parameters])

    def close(self) -> None:
        self._connection.close()


def _renamed(value: object, number: int) -> object:
    if isinstance(value, str) and value[:2] in ("m-", "d-", "l-"):
        return f"{value}-{number}"
    return value


@contextlib.contextmanager
def _recorded(statements: list[tuple[str, tuple[object, ...]]]) -> Any:
    """Write down every statement that runs meanwhile."""
    originals = {name: getattr(Transaction, name) for name in ("all", "one", "run")}

    def recording(original: Any) -> Any:
        def statement(self: Transaction, sql: str, *parameters: object) -> Any:
            statements.append((sql, parameters))
            return original(self, sql, *parameters)

        return statement

    for name, original in originals.items():
        setattr(Transaction, name, recording(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(Transaction, name, original)
