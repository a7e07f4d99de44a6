"""Claude Code behind the harness contract, in stream mode.

One `ClaudeSession` for each session of a project; this file turns the contract's calls into acts
on them and on Claude Code's own records.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from isola_core.errors import Conflict, HarnessError, NotFound
from isola_core.ports import (
    Clock,
    Effects,
    Outgoing,
    Question,
    Receipt,
    ReceiptState,
    Rewound,
    SessionRef,
    SessionState,
    SessionStatus,
    Sink,
    TurnEvent,
    TurnRef,
    TurnResult,
    next_generation,
)
from isola_harnesses.claude import excision, transcript
from isola_harnesses.claude.environment import (
    ClaudeSettings,
    child_environment,
    config_home,
    find_binary,
)
from isola_harnesses.claude.session import ClaudeSession, Limits

_VERSION_WAIT: Final = 15.0

Listener = Callable[[SessionRef, tuple[Question, ...]], None]


class ClaudeHarness:
    """Claude Code: `Harness`, `Streams`, `Interrupts`, `Holds`, `Rewinds`, `Recounts`,
    `Confirms`, `Asks`."""

    def __init__(
        self,
        settings: ClaudeSettings,
        env: Mapping[str, str],
        clock: Clock,
        limits: Limits | None = None,
    ) -> None:
        self._settings, self._env, self._clock = settings, env, clock
        self._limits = limits or Limits()
        self._home = config_home(env)
        self._live: dict[str, ClaudeSession] = {}
        self._listener: Listener | None = None
        self._version = ""
        self._closed = False

    async def ensure_session(self, session: SessionRef) -> SessionStatus:
        """Check the program and the folder, settle the session's id; nothing is started or sent."""
        session = self._settled(session)
        version = await self._check_version()
        live = self._live.get(session.id)
        if live is not None and _same(live, session):
            return SessionStatus(session, live.state, version)
        return SessionStatus(session, SessionState.ASLEEP, version)

    async def dispatch(self, session: SessionRef, message: Outgoing) -> TurnResult:
        """Send one message and wait for the end of its turn."""
        return await self.dispatch_streaming(session, message, _ignore)

    async def dispatch_streaming(
        self, session: SessionRef, message: Outgoing, sink: Sink
    ) -> TurnResult:
        """`dispatch`, with the reply's pieces, tool calls and the proof of receipt on the way."""
        live = await self._session(self._settled(session))
        return await live.turn(message, sink)

    def holds(self, session: SessionRef) -> bool:
        """Whether a child of this session lives in this process."""
        live = self._live.get(session.id)
        return live is not None and live.pid is not None

    async def interrupt(self, session: SessionRef) -> None:
        """End the running turn; the session stays."""
        if (live := self._live.get(session.id)) is not None:
            await live.interrupt()

    async def reset_session(self, session: SessionRef) -> SessionRef:
        """A new generation; the old transcript stays where it is."""
        await self._let_go(session)
        return self._settled(next_generation(session))

    async def close(self) -> None:
        """End all children."""
        self._closed = True
        live = list(self._live.values())
        self._live.clear()
        await asyncio.gather(*(each.end() for each in live))

    def set_listener(self, listener: Listener) -> None:
        """Who is told of the agents' questions."""
        self._listener = listener

    async def answer(self, session: SessionRef, question: str, choice: str, text: str = "") -> None:
        """Answer an open question of a session."""
        live = self._live.get(session.id)
        if live is None:
            raise NotFound("This question is no longer open.")
        await live.answer(question, choice, text)

    async def confirm(self, session: SessionRef, message: Outgoing) -> Receipt:
        """What the transcript says about a message that was on its way when somebody died.

        An orphaned agent finishes its turn first: its answer is worth waiting for.
        """
        session = self._settled(session, folder_needed=False)
        assert session.cwd is not None
        assert session.backend_id is not None
        with contextlib.suppress(HarnessError):
            await self._session_for_records(session).wait_for_holders()
        path = transcript.transcript_path(self._home, session.cwd, session.backend_id)
        try:
            found = await asyncio.to_thread(transcript.read_transcript, path)
        except OSError:
            return Receipt(ReceiptState.UNKNOWN, proof=f"no readable transcript at {path}")
        turn = transcript.turn_id(message.delivery)
        index = transcript.find_turn(found.records, turn)
        if index is None:
            if found.damaged or message.raw:
                return Receipt(ReceiptState.UNKNOWN, proof=f"{path} does not settle it")
            return Receipt(ReceiptState.ABSENT, proof=f"not in {path}")
        record = found.records[index]
        if not message.raw and not transcript.holds_message(record, message):
            return Receipt(ReceiptState.UNKNOWN, proof=f"{path} has another text under its id")
        proof = f"{path}, record {turn}"
        reply = transcript.reply_of(found.records, index)
        if reply is None:
            return Receipt(ReceiptState.RECEIVED, turn_id=turn, proof=proof)
        return Receipt(ReceiptState.ANSWERED, reply, turn, proof)

    async def rewind(self, session: SessionRef, turn: TurnRef) -> Rewound:
        """Make the session forget one turn: by a copy of its history, or by a fresh start."""
        session = self._settled(session, folder_needed=False)
        assert session.cwd is not None
        assert session.backend_id is not None
        await self._let_go(session)
        await self._session_for_records(session).wait_for_holders()
        path = transcript.transcript_path(self._home, session.cwd, session.backend_id)
        if not path.exists():
            if transcript.transcripts_elsewhere(self._home, session.cwd, session.backend_id):
                return self._fresh(session, "its history belongs to another folder")
            return Rewound(session, replaced=False, note="The session has no history yet.")
        try:
            return await asyncio.to_thread(self._cut, session, turn, path)
        except OSError as error:
            raise HarnessError(f"The transcript {path} cannot be copied: {error}.") from error

    async def effects(self, session: SessionRef, turn: TurnRef) -> Effects:
        """What the transcript tells of a turn's files, commands and subagents."""
        session = self._settled(session, folder_needed=False)
        assert session.cwd is not None
        assert session.backend_id is not None
        path = transcript.transcript_path(self._home, session.cwd, session.backend_id)

        def look() -> Effects:
            found = transcript.read_transcript(path)
            start = excision.locate(found, *_wanted(turn))
            if start is None:
                return Effects()
            done = excision.effects(found.records, start)
            return Effects(done.files, _other_effects(done))

        try:
            return await asyncio.to_thread(look)
        except (OSError, excision.CannotCut):
            return Effects()

    def _cut(self, session: SessionRef, turn: TurnRef, path: Path) -> Rewound:
        found = transcript.read_transcript(path)
        done = excision.Effects()
        try:
            start = excision.locate(found, *_wanted(turn))
            if start is None:
                if found.damaged or excision.quoted(found, turn.text):
                    raise excision.CannotCut(
                        "the turn is not found in it, but pieces of its text are"
                    )
                return Rewound(session, replaced=False, note="The session never had this message.")
            done = excision.effects(found.records, start)
            new_id = str(uuid.uuid4())
            planned = excision.cut(found, start, new_id)
            if planned.kept_prompts:
                # Without any turn there is no history to resume: the id starts an empty one.
                excision.write_copy(planned, path.with_name(f"{new_id}.jsonl"))
        except excision.CannotCut as error:
            return self._fresh(session, str(error), done)
        note = "The turn was taken out of the session; later turns are still there."
        return Rewound(
            replace(session, backend_id=new_id),
            replaced=False,
            note=f"{note} {_other_effects(done)}".rstrip(),
            kept_changes=done.files,
        )

    def _fresh(
        self, session: SessionRef, reason: str, done: excision.Effects | None = None
    ) -> Rewound:
        done = done or excision.Effects()
        note = (
            f"A fresh session took over, because the turn could not be taken out alone: {reason}."
        )
        fresh = replace(next_generation(session), backend_id=str(uuid.uuid4()))
        return Rewound(
            fresh,
            replaced=True,
            note=f"{note} {_other_effects(done)}".rstrip(),
            kept_changes=done.files,
        )

    def _settled(self, session: SessionRef, *, folder_needed: bool = True) -> SessionRef:
        """The session with its id and the real path of its folder. Raises `HarnessError`."""
        if session.cwd is None:
            raise HarnessError(
                "Claude Code works in a project's folder; this project has none. Give it a path."
            )
        cwd = session.cwd.resolve()
        if folder_needed and not cwd.is_dir():
            raise HarnessError(f"The project's folder {cwd} does not exist.")
        backend_id = session.backend_id or transcript.first_session_id(session, cwd)
        return replace(session, backend_id=backend_id, cwd=cwd)

    async def _session(self, session: SessionRef) -> ClaudeSession:
        """The live session for a reference; one for another history is ended first."""
        if self._closed:
            raise HarnessError("Isola is ending; nothing is sent any more.")
        live = self._live.get(session.id)
        if live is not None:
            if _same(live, session):
                return live
            if live.state in (SessionState.WORKING, SessionState.NEEDS_USER):
                raise Conflict("A turn is running in this session's earlier history.")
            await live.end()
        fresh = self._session_for_records(session)
        self._live[session.id] = fresh
        return fresh

    def _session_for_records(self, session: SessionRef) -> ClaudeSession:
        live = self._live.get(session.id)
        if live is not None and _same(live, session):
            return live
        return ClaudeSession(
            session, self._settings, self._env, self._clock, self._tell, self._limits
        )

    async def _let_go(self, session: SessionRef) -> None:
        """End the session's child; a running turn is interrupted first."""
        live = self._live.pop(session.id, None)
        if live is not None:
            await live.interrupt()
            await live.end()

    def _tell(self, session: SessionRef, questions: tuple[Question, ...]) -> None:
        if self._listener is not None:
            self._listener(session, questions)

    async def _check_version(self) -> str:
        """The version, asked once. Raises `HarnessError` where the program does not work."""
        if not self._version:
            binary = find_binary(self._settings, self._env)
            self._version = await program_version(
                binary, child_environment(self._settings, self._env)
            )
        return self._version


async def program_version(binary: Path, env: Mapping[str, str]) -> str:
    """What `claude --version` says. Raises `HarnessError`."""
    try:
        process = await asyncio.create_subprocess_exec(
            str(binary),
            "--version",
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise HarnessError(f"{binary} cannot be started: {error}.") from error
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _VERSION_WAIT)
    except (TimeoutError, asyncio.CancelledError) as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if isinstance(error, asyncio.CancelledError):
            raise
        raise HarnessError(f"{binary} --version does not answer.") from error
    said = output.decode("utf-8", "replace").strip()
    if process.returncode != 0 or not said:
        raise HarnessError(f"{binary} --version failed: {said[:300] or process.returncode}")
    return said.splitlines()[0][:80]


def _same(live: ClaudeSession, session: SessionRef) -> bool:
    """Whether a live session is the one that a reference means: the same history and folder."""
    return (live.backend_id, live.cwd) == (session.backend_id, session.cwd)


def _wanted(turn: TurnRef) -> tuple[str, str]:
    """The uuid of a turn's prompt, and its text as it was submitted."""
    sent = transcript.sent_text(Outgoing(turn.delivery, "", turn.text, turn.context))
    return turn.turn_id or transcript.turn_id(turn.delivery), sent


def _other_effects(done: excision.Effects) -> str:
    """What may have changed beside the files that are named."""
    parts = []
    if done.commands:
        parts.append(f"Commands that it ran ({done.commands}) may have changed files too.")
    if done.subagents:
        parts.append(f"Its subagents ({done.subagents}) may have changed files too.")
    return " ".join(parts)


def _ignore(event: TurnEvent) -> None:
    """A sink for those who only want the result."""
