"""Puts the parts together for one process: configuration, store, use cases, harnesses.

The terminal program and every command open one `Runtime` and close it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from isola_core.attribution.lexicon import Lexicon
from isola_core.attribution.router import Router
from isola_core.attribution.rules import is_low_signal
from isola_core.clock import RandomIds, SystemClock
from isola_core.config import Config, load_config
from isola_core.memory.gates import Reading
from isola_core.memory.recall import recall
from isola_core.memory.scopes import project_read_set
from isola_core.model import MemoryView, Project
from isola_core.paths import Paths
from isola_core.ports import Clock, Harness, Ids, PastTurn, Processes, SessionRef
from isola_core.processes import SystemProcesses
from isola_core.projects import NewProject, Projects
from isola_core.service.delegated import DelegatedService
from isola_core.service.dispatcher import Dispatcher
from isola_core.service.recovery import Recovery
from isola_core.service.settings import Core, Settings, Vault, ensure_owner
from isola_core.store import deliveries
from isola_core.store.sqlite import SqliteStore
from isola_harnesses.judges import create_judge
from isola_harnesses.registry import HarnessServices, create_harness

LOG = logging.getLogger("isola.runtime")

TICK_S = 1.0
"""The longest pause between two ticks while a program runs; a stored change ends it early."""


class StoreHistory:
    """The store's turns, as harnesses without a history of their own see them."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def turns(self, session: SessionRef) -> Sequence[PastTurn]:
        """The session's finished turns of its current generation, oldest first."""
        return await self._store.read(
            lambda tx: deliveries.past_turns(tx, session.id, session.generation)
        )


@dataclass(slots=True)
class Runtime:
    """Everything one process needs; made by `open_runtime`."""

    config: Config
    paths: Paths
    store: SqliteStore
    core: Core
    projects: Projects
    service: DelegatedService
    dispatcher: Dispatcher
    recovery: Recovery
    clock: Clock
    processes: Processes
    services: HarnessServices
    _harnesses: dict[str, Harness] = field(default_factory=dict)

    def harness(self, label: str) -> Harness:
        """The harness of this label (`harness_label`), made on first use.

        Raises:
            ConfigError, HarnessError: its settings are wrong, or it cannot be made.
        """
        name = label.partition(":")[0]
        if name not in self._harnesses:
            settings = self.config.harness_settings(name)
            self._harnesses[name] = create_harness(settings, name, self.services)
        return self._harnesses[name]

    async def recall(self, project: Project, query: str, limit: int) -> list[MemoryView]:
        """What one project's work may recall about a query."""
        owner = self.core.owner
        read_set = project_read_set(owner.id, owner.label, project)
        return await self.store.read(lambda tx: recall(tx, read_set, query, limit))

    async def tick_forever(self) -> None:
        """Tick while the program runs; a failed tick is tried again."""
        while True:
            try:
                await self.recovery.tick()
            except Exception:
                LOG.exception("the tick failed; it is tried again")
            await asyncio.sleep(TICK_S)

    async def close(self) -> None:
        """End turns, let go of backends and close the store, whatever fails on the way."""
        try:
            await self.dispatcher.close()
        finally:
            for harness in self._harnesses.values():
                try:
                    await harness.close()
                except Exception:
                    LOG.exception("closing a harness failed")
            await self.store.close()


@asynccontextmanager
async def open_runtime(
    config_file: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> AsyncIterator[Runtime]:
    """Open the store that the configuration names and compose the use cases over it.

    Raises:
        ConfigError: the configuration has problems, each named.
        StoreError: the store cannot be opened.
    """
    env = os.environ if environ is None else environ
    paths = Paths.from_environment(env)
    config = load_config(config_file, paths=paths)
    clock = clock or SystemClock()
    ids = ids or RandomIds()
    processes = SystemProcesses(paths.data_dir)
    machine = processes.me().machine
    store = await SqliteStore.open(config.store_path(paths), clock)
    try:
        owner = await ensure_owner(store, ids, machine, platform.node() or "this machine")
        settings = Settings(
            isolation_ms=int(config.isolation_s * 1000),
            inertia_ms=int(config.inertia_s * 1000),
            auto_at=config.auto_at,
        )
        core = Core(
            store, owner, machine, settings, ids, Vault(), lambda each: harness_label(config, each)
        )
        lexicon = Lexicon.load()
        judge = create_judge(config.judge, env)
        projects = Projects(store, owner.id, owner.label)
        await projects.sync(_configured(config))
        runtime = Runtime(
            config=config,
            paths=paths,
            store=store,
            core=core,
            projects=projects,
            service=DelegatedService(core, Router(judge, local=config.judge_is_local)),
            dispatcher=Dispatcher(core, lambda name: runtime.harness(name), processes),
            recovery=Recovery(
                core, Reading(lambda text: is_low_signal(text, lexicon), lexicon.memory_kind)
            ),
            clock=clock,
            processes=processes,
            services=HarnessServices(StoreHistory(store), clock, env, paths.state_dir),
        )
    except BaseException:
        await store.close()
        raise
    try:
        yield runtime
    finally:
        try:
            await runtime.close()
        finally:
            if judge is not None:
                await judge.close()


def harness_label(config: Config, project: Project) -> str:
    """The name and type of a project's harness, such as `default:notebook`.

    A session keeps it: another type under the same name means a fresh history.
    """
    name = config.harness_of(project)
    return f"{name}:{config.harness_settings(name)['type']}"


def _configured(config: Config) -> list[NewProject]:
    return [
        NewProject(
            name=each.name,
            description=each.description,
            aliases=tuple(each.aliases),
            path=Path(each.path) if each.path else None,
            harness=each.harness,
            protected=each.protected,
            id=each.id,
        )
        for each in config.projects
    ]
