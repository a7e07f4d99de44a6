"""The tick: everything that time or a crash has left to do. Any long-lived process does it.

Commits windows that are over, runs write tasks through the gates, gives cards to messages that a
crash left undecided, lets the judge learn, and prunes the change sequence. Each step is its own
transaction, and doing any of them twice changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from isola_core.attribution.words import WordCounts
from isola_core.memory.gates import Passed, Reading, Refused, pass_gates
from isola_core.model import Attribution, DecisionState, Stage, WriteTaskState
from isola_core.service.settings import Core
from isola_core.store import conversations, decisions, memories, projects
from isola_core.store.memories import NewMemory, WriteTask
from isola_core.store.transaction import Transaction
from isola_core.text import terms

BATCH: Final = 50
"""Rows one step takes at a time, so that no transaction is long."""

KEPT_CHANGES: Final = 20_000
"""Changes that stay readable for watchers that fell behind."""

UNDECIDED_AFTER_MS: Final = 90_000
"""A message without a decision for longer than any judge may take was left by a crash."""


@dataclass(frozen=True, slots=True)
class Ticked:
    """What one tick did, as counts; `errors` are steps that failed and will be tried again."""

    committed: int = 0
    written: int = 0
    refused: int = 0
    requeued: int = 0
    carded: int = 0
    learned: int = 0
    errors: tuple[str, ...] = ()


class Recovery:
    """Does the tick for one person's store."""

    def __init__(self, core: Core, reading: Reading) -> None:
        self._core = core
        self._reading = reading

    async def tick(self) -> Ticked:
        """Do what is due now."""
        committed = await self._commit()
        requeued = await self._requeue()
        written, refused = await self._write_memories()
        learned = await self._learn()
        carded = await self._card_undecided()
        await self._prune()
        return Ticked(committed, written, refused, requeued, carded, learned)

    async def next_deadline(self) -> int | None:
        """When the earliest running window ends, UTC milliseconds."""
        owner = self._core.owner.id
        return await self._core.store.read(lambda tx: decisions.next_deadline(tx, owner))

    async def _commit(self) -> int:
        owner = self._core.owner.id
        due = await self._core.store.read(lambda tx: decisions.due_decisions(tx, owner))
        if not due:
            return 0

        def work(tx: Transaction) -> int:
            again = set(decisions.due_decisions(tx, owner))
            ready = [each for each in due if each in again]
            for view in decisions.decision_views(tx, owner, ready):
                decisions.move_decision(tx, view, DecisionState.COMMITTED)
            return len(ready)

        return await self._core.store.write(work)

    async def _requeue(self) -> int:
        owner = self._core.owner.id
        settings = self._core.settings
        before = self._core.store.clock.now() - settings.write_timeout_ms
        stale = await self._core.store.read(
            lambda tx: memories.stale_write_tasks(tx, owner, before)
        )
        if not stale:
            return 0

        def work(tx: Transaction) -> int:
            tasks = memories.stale_write_tasks(tx, owner, before)
            for task in tasks:
                again = task.attempts < settings.write_attempts
                state = WriteTaskState.PENDING if again else WriteTaskState.FAILED
                memories.move_write_task(tx, task, state, "timed out")
            return len(tasks)

        return await self._core.store.write(work)

    async def _write_memories(self) -> tuple[int, int]:
        owner = self._core.owner.id
        written = refused = 0
        while tasks := await self._core.store.read(
            lambda tx: memories.ready_write_tasks(tx, owner, BATCH)
        ):
            for task in tasks:
                claimed = await self._core.store.write(lambda tx, task=task: self._claim(tx, task))  # type: ignore[misc]
                if claimed is None:
                    continue
                done = await self._core.store.write(
                    lambda tx, claimed=claimed: self._write(tx, claimed)  # type: ignore[misc]
                )
                written += done
                refused += not done
        return written, refused

    def _claim(self, tx: Transaction, task: WriteTask) -> WriteTask | None:
        now = [
            each for each in memories.open_write_tasks(tx, task.decision) if each.seq == task.seq
        ]
        if not now or now[0].state is not WriteTaskState.PENDING:
            return None
        if now[0].decision_state != DecisionState.COMMITTED:
            return None
        memories.move_write_task(tx, now[0], WriteTaskState.RUNNING)
        return next(
            each for each in memories.open_write_tasks(tx, task.decision) if each.seq == task.seq
        )

    def _write(self, tx: Transaction, task: WriteTask) -> bool:
        """Through the gates into memory. False: a gate refused, and the task says which."""
        now = [
            each for each in memories.open_write_tasks(tx, task.decision) if each.seq == task.seq
        ]
        if not now or now[0].state is not WriteTaskState.RUNNING:
            return False
        if task.raw or task.masked:
            reason = "raw: never a memory" if task.raw else "secret: it was sent unstored"
            memories.move_write_task(tx, now[0], WriteTaskState.DONE, reason)
            return False
        state = now[0].decision_state
        match pass_gates(task.text, state, task.scope, self._reading, task.kind):
            case Refused(gate, reason):
                memories.move_write_task(tx, now[0], WriteTaskState.DONE, f"{gate}: {reason}")
                return False
            case Passed(kind, durability, digest):
                owner = self._core.owner.id
                known = memories.memory_by_hash(tx, owner, task.scope, digest)
                if known is not None:
                    memories.add_source(tx, known, task.decision)
                    memories.move_write_task(tx, now[0], WriteTaskState.DONE, f"duplicate {known}")
                    return False
                memory = NewMemory(
                    id=self._core.ids.new("mem"),
                    scope=task.scope,
                    owner=owner,
                    kind=kind,
                    durability=durability,
                    content=task.text.strip(),
                    hash=digest,
                    terms=tuple(terms(task.text)),
                    conversation=task.conversation,
                    author="user",
                )
                memories.insert_memory(tx, memory, task.decision)
                memories.move_write_task(tx, now[0], WriteTaskState.DONE, f"written {memory.id}")
                memories.audit(tx, owner, "isola", "remember", memory.id, "written")
                return True

    async def _learn(self) -> int:
        owner = self._core.owner.id
        if not await self._core.store.read(lambda tx: memories.learnable(tx, owner, 1)):
            return 0

        def work(tx: Transaction) -> int:
            rows = memories.learnable(tx, owner, BATCH)
            texts: dict[str, list[str]] = defaultdict(list)
            for _, project, text in rows:
                texts[project].append(text)
            blobs = memories.judge_blobs(tx, owner, texts) if texts else {}
            packed = {}
            for project, new in texts.items():
                counts = WordCounts.unpack(blobs[project]) if project in blobs else WordCounts()
                counts.add_all(new)
                packed[project] = counts.pack()
            memories.save_judge_blobs(tx, owner, packed)
            memories.set_learned(tx, [decision for decision, _, _ in rows], learned=True)
            projects.bump_version(tx, "judge_version")
            tx.changed("judge", owner)
            return len(rows)

        return await self._core.store.write(work)

    async def _card_undecided(self) -> int:
        owner = self._core.owner.id
        before = self._core.store.clock.now() - UNDECIDED_AFTER_MS

        def look(tx: Transaction) -> list[str]:
            return [each.id for each in conversations.undecided_messages(tx, owner, before)]

        if not await self._core.store.read(look):
            return 0

        def work(tx: Transaction) -> int:
            found = look(tx)
            for message in found:
                decisions.insert_decision(
                    tx,
                    owner,
                    self._core.ids.new("d"),
                    message,
                    DecisionState.WAITING_CONFIRMATION,
                    Attribution(Stage.JUDGEMENT, 0.0, "the program ended before it was decided"),
                )
            return len(found)

        return await self._core.store.write(work)

    async def _prune(self) -> None:
        def count(tx: Transaction) -> int:
            row = tx.one("SELECT coalesce(max(seq) - min(seq), 0) AS n FROM changes")
            return int(row["n"]) if row else 0

        if await self._core.store.read(count) > 2 * KEPT_CHANGES:
            await self._core.store.write(
                lambda tx: tx.run(
                    "DELETE FROM changes WHERE seq < (SELECT max(seq) FROM changes) - ?",
                    KEPT_CHANGES,
                )
            )
