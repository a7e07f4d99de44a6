"""What a test of the real Claude Code works with: a harness, sessions, what the model saw."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from isola_core.ports import (
    Outgoing,
    Question,
    QuotedContext,
    SessionRef,
    TurnEvent,
    TurnRef,
    TurnResult,
)
from isola_harnesses.claude.harness import ClaudeHarness
from isola_harnesses.claude.transcript import transcript_path
from tests.fake_model import FakeModel, Request
from tests.fake_model.reading import objects, texts


@dataclass
class ClaudeWorld:
    """One harness; `sessions` are the references to use from now on, by project."""

    create: Callable[[], ClaudeHarness]
    model: FakeModel
    folder: Path
    config_home: Path
    sessions: dict[str, SessionRef] = field(default_factory=dict)
    events: list[TurnEvent] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._question = asyncio.Event()
        self.start()

    def start(self) -> None:
        """A new harness, as after a restart of the program."""
        self.harness = self.create()
        self.harness.set_listener(self._listen)

    def _listen(self, session: SessionRef, questions: tuple[Question, ...]) -> None:
        self.asked = list(questions)
        if questions:
            self._question.set()

    def session(self, project: str) -> SessionRef:
        if project not in self.sessions:
            cwd = self.folder / "projects" / project
            cwd.mkdir(parents=True, exist_ok=True)
            self.sessions[project] = SessionRef(
                f"s-{project}", project, f"proj:{project}", 0, cwd=cwd
            )
        return self.sessions[project]

    def path(self, project: str) -> Path:
        cwd = self.session(project).cwd
        assert cwd is not None
        return cwd

    def transcript(self, project: str) -> Path:
        session = self.session(project)
        assert session.backend_id is not None
        return transcript_path(self.config_home, self.path(project).resolve(), session.backend_id)

    def message(self, text: str, *, raw: bool = False, context: QuotedContext | None = None) -> (
        Outgoing
    ):  # fmt: skip
        number = next(self._numbers)
        return Outgoing(f"d-{number}", f"m-{number}", text, context or QuotedContext(), raw)

    async def send(
        self, project: str, message: Outgoing | str, *, context: QuotedContext | None = None
    ) -> TurnResult:
        if isinstance(message, str):
            message = self.message(message, context=context)
        self.events = []
        result = await asyncio.wait_for(
            self.harness.dispatch_streaming(self.session(project), message, self.events.append), 60
        )
        if result.backend_id is not None:
            self.sessions[project] = replace(self.session(project), backend_id=result.backend_id)
        return result

    async def question(self) -> Question:
        """The first open question, once there is one."""
        await asyncio.wait_for(self._question.wait(), 20)
        self._question.clear()
        return self.asked[0]

    async def rewind(self, project: str, message: Outgoing) -> tuple[bool, str, tuple[str, ...]]:
        turn = TurnRef(message.delivery, "", message.text, message.context)
        rewound = await self.harness.rewind(self.session(project), turn)
        self.sessions[project] = rewound.session
        return rewound.replaced, rewound.note, rewound.kept_changes

    async def requests(self, count: int) -> list[Request]:
        """The model's requests so far, once there are `count`."""
        return await asyncio.to_thread(self.model.wait_for_requests, count)

    def last_request(self) -> str:
        """Everything of the newest request to the model, as it was sent."""
        return self.model.requests[-1].raw.decode()

    def user_texts(self) -> list[str]:
        """The texts of the newest request's messages, oldest first."""
        messages = objects(self.model.requests[-1].body["messages"])
        return [text for each in messages for text in texts(each.get("content"))]


async def until(condition: Callable[[], bool], limit: float = 20.0) -> None:
    """Wait for a condition; fails after `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        await asyncio.sleep(0.02)
