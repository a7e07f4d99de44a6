"""Any program that takes a prompt and prints an answer, described in the configuration.

    harness:
      type: command
      argv: [agent, --print, --output-format, json, --session-id, "{session}"]
      resume: [agent, --print, --output-format, json, --resume, "{session}"]
      reply: json
      reply_path: result

One run a turn, in the project's folder and in a process group that is ended after it. The prompt
goes to stdin, or where `{prompt}` stands. `{session}` is the session's id: ours, or the one that
the first answer names at `session_path`. No shell is involved.
"""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from isola_core.errors import HarnessError, StoreError
from isola_core.paths import ensure_private_dir
from isola_core.ports import (
    FailureKind,
    Outgoing,
    SessionRef,
    SessionState,
    SessionStatus,
    TurnResult,
    next_generation,
)
from isola_core.secrets import mask
from isola_core.text import safe_label
from isola_harnesses.command_output import (
    at,
    document_in,
    find_document,
    kind_of,
    text_reply,
    without_escapes,
)
from isola_harnesses.command_settings import PLACEHOLDER, CommandSettings
from isola_harnesses.context import render
from isola_harnesses.leftovers import Leftovers
from isola_harnesses.one_shot import Ending, Limits, OneShot, Outcome
from isola_harnesses.registry import HarnessServices
from isola_harnesses.settings import read_settings
from isola_harnesses.surroundings import without_surroundings

_MAX_ARGUMENT: Final = 128 * 1024 - 1
"""Bytes of one argument: Linux refuses longer ones."""

_DIAGNOSTIC_LINES: Final = 5


def create(settings: Mapping[str, object], services: HarnessServices) -> CommandHarness:
    """The entry point; raises `ConfigError` for wrong settings."""
    return CommandHarness(read_settings(CommandSettings, settings, "the command harness"), services)


@dataclass(frozen=True, slots=True)
class _Running:
    """A run, and the event of its child being gone."""

    run: OneShot
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class CommandHarness:
    """Runs the command once a turn; implements Interrupts."""

    def __init__(self, settings: CommandSettings, services: HarnessServices) -> None:
        self._settings = settings
        self._services = services
        self._shape = settings.shape()
        self._leftovers = Leftovers(services.state_dir / "children")
        self._runs: dict[str, _Running] = {}
        self._closed = False

    async def ensure_session(self, session: SessionRef) -> SessionStatus:
        """Is the program there, and the folder? Ends what a killed program left of this session.

        Raises `HarnessError` while another process runs a turn of it.
        """
        if session.id in self._runs:
            return SessionStatus(session, SessionState.WORKING, "the command runs")
        ended = await asyncio.to_thread(self._leftovers.end, session)
        try:
            program = self._program(self._template(session)[0])
            self._folder(session)
        except HarnessError as error:
            return SessionStatus(session, SessionState.FAILED, error.message)
        return SessionStatus(session, SessionState.IDLE, ended or program)

    async def dispatch(self, session: SessionRef, message: Outgoing) -> TurnResult:
        """Run the command with this message and wait for its end."""
        if self._closed:
            raise HarnessError("The command harness is closed.")
        if session.id in self._runs:
            raise HarnessError(f"Session {session.key} has a running turn; one at a time.")
        session_id = session.backend_id or str(uuid.uuid4())
        text = render(message.context, message.text)
        running: _Running | None = None
        try:
            run = self._prepare(session, session_id, text)
            running = self._runs[session.id] = _Running(run)
            await asyncio.to_thread(self._leftovers.end, session)
            try:
                outcome = await run.run(partial(self._leftovers.note, session))
            finally:
                self._leftovers.forget(session)
        except HarnessError as error:
            return _failed(error.message, written=False)
        except StoreError as error:
            return _failed(error.message)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            program = self._settings.argv[0]
            return _failed(f"{program} cannot be started: {reason}.", written=False)
        finally:
            if running is not None:
                del self._runs[session.id]
                running.gone.set()
        ours = session_id if self._uses_own_id(session) else None
        return await asyncio.to_thread(self._result, outcome, message, session, ours)

    async def reset_session(self, session: SessionRef) -> SessionRef:
        """A new generation: the next turn starts a session of its own."""
        return next_generation(session)

    async def interrupt(self, session: SessionRef) -> None:
        """End the running command; its turn is cancelled."""
        if found := self._runs.get(session.id):
            found.run.interrupt()

    async def close(self) -> None:
        """End all running commands and wait until they are gone."""
        self._closed = True
        running = list(self._runs.values())
        for each in running:
            each.run.interrupt()
        for each in running:
            await each.gone.wait()

    def _prepare(self, session: SessionRef, session_id: str, text: str) -> OneShot:
        cwd = self._folder(session)
        values = {"prompt": text, "session": session_id, "cwd": str(cwd)}
        template = self._template(session)
        program = self._program(template[0])
        argv = [program, *(_fill(each, values) for each in template[1:])]
        settings = self._settings
        if any(len(each.encode("utf-8", "replace")) > _MAX_ARGUMENT for each in argv):
            raise HarnessError(
                "The message is too long for an argument (128 KB). Shorten it or set prompt: stdin."
            )
        given = b"" if settings.by_argument else text.encode("utf-8", "replace")
        limits = Limits(
            total_s=settings.timeout_s,
            idle_s=settings.idle_timeout_s,
            kept_bytes=settings.max_output_bytes,
        )
        env = self._environment(cwd)
        return OneShot(argv, cwd, env, given, limits, self._result_test())

    def _template(self, session: SessionRef) -> Sequence[str]:
        resumes = session.backend_id is not None and self._settings.resume is not None
        return self._settings.resume if resumes and self._settings.resume else self._settings.argv

    def _uses_own_id(self, session: SessionRef) -> bool:
        """Whether the id that we chose was given to the command."""
        return session.backend_id is None and any(
            "{session}" in each for each in self._settings.argv
        )

    def _result_test(self) -> Callable[[bytes], bool] | None:
        """How to tell the result while the command runs, where one line can be it for sure."""
        if self._settings.reply == "text":
            return None
        if self._settings.reply == "last-json-line" and not self._settings.reply_match:
            return None

        def is_result(line: bytes) -> bool:
            document = document_in(without_escapes(line.decode("utf-8", "replace")))
            return document is not None and self._shape.is_reply(document)

        return is_result

    def _program(self, name: str) -> str:
        """The program's whole path; never one that the project's folder could have put there."""
        home = self._services.env.get("HOME")
        if name.startswith("~/") and home:
            name = str(Path(home) / name[2:])
        found = shutil.which(name, path=self._services.env.get("PATH", ""))
        if found is None or not Path(found).is_absolute():
            raise HarnessError(
                f"The command {name} is not found. Install it, or name its whole path in argv."
            )
        return found

    def _folder(self, session: SessionRef) -> Path:
        """The project's folder, or for a project without one an empty one of its own."""
        if session.cwd is None:
            name = uuid.uuid5(uuid.NAMESPACE_OID, session.id).hex
            return ensure_private_dir(self._services.state_dir / "folders" / name)
        if not session.cwd.is_dir():
            raise HarnessError(f"The project's folder {session.cwd} does not exist.")
        return session.cwd

    def _environment(self, cwd: Path) -> dict[str, str]:
        given = self._services.env
        env = without_surroundings(given)
        env["PWD"] = str(cwd)
        for name, source in self._settings.env_from.items():
            if source not in given:
                raise HarnessError(f"The environment variable {source} is not set (env_from).")
            env[name] = given[source]
        return env

    def _result(
        self, outcome: Outcome, message: Outgoing, session: SessionRef, ours: str | None
    ) -> TurnResult:
        """What the run came to. Only a whole answer of a command that did well is a reply."""
        stdout, stderr = (
            tail.bytes().decode("utf-8", "replace") for tail in (outcome.stdout, outcome.stderr)
        )
        meta = _meta(outcome, stderr)
        name = self._settings.argv[0]
        if outcome.ending is Ending.INTERRUPTED:
            return _failed("The turn was stopped.", FailureKind.CANCELLED, meta)
        document = None
        if self._settings.reply != "text":
            lines = self._settings.reply == "last-json-line"
            document = find_document((stdout, stderr), self._shape, lines=lines)
        whole = self._settings.reply == "json" and document is not None
        if outcome.ending in (Ending.SILENT, Ending.TIMED_OUT) and not whole:
            return _failed(
                _too_slow(outcome.ending, name, self._settings), FailureKind.TIMED_OUT, meta
            )
        backend_id = self._session_in(document) or ours
        envelope = document if document is not None else document_in(stdout)
        if error := self._error(outcome, document, envelope, stdout, stderr):
            found = self._session_in(document)
            return _failed(f"{name}: {mask(error)}", kind_of(envelope), meta, backend_id=found)
        if document is None:
            reply = text_reply(stdout)
        else:
            reply = text_reply(str(at(document, self._shape.reply)))
        if not reply:
            return _failed(f"{name}: its answer is empty.{_said(stderr)}", meta=meta)
        changed = backend_id if backend_id != session.backend_id else None
        return TurnResult(
            ok=True, reply=reply, turn_id=message.delivery, meta=meta, backend_id=changed
        )

    def _session_in(self, document: object) -> str | None:
        found = at(document, self._shape.session) if self._shape.session else None
        return found if isinstance(found, str) and _is_id(found) else None

    def _error(
        self, outcome: Outcome, document: object, envelope: object, stdout: str, stderr: str
    ) -> str:
        """Why a run that ended is not good, or ""."""
        told = self._shape.error_in(envelope)
        if told is not None:
            return f"it reports an error: {told or 'without a word'}."
        if outcome.status:
            said = _said(stderr) or _said(stdout)
            return f"{_status(outcome.status)}.{said}"
        if not outcome.read_all:
            return "it ended without reading the whole message. Does it take its prompt on stdin?"
        if self._settings.reply == "text":
            limit = self._settings.max_output_bytes
            return f"it printed more than {limit} bytes." if outcome.stdout.dropped else ""
        if document is None:
            return (
                f"no JSON with {self._settings.reply_path} in its output.{_said(stderr or stdout)}"
            )
        return ""


def _fill(template: str, values: Mapping[str, str]) -> str:
    """One argument; what is filled in is never read as a template again."""
    return PLACEHOLDER.sub(lambda found: values[found.group(1)], template)


def _is_id(text: str) -> bool:
    """Whether a session id can be an argument: printable, not an option, of sane length."""
    return text.isprintable() and 0 < len(text) <= 200 and not text.startswith("-")


def _failed(
    error: str,
    kind: FailureKind = FailureKind.ERROR,
    meta: Mapping[str, object] | None = None,
    *,
    written: bool = True,
    backend_id: str | None = None,
) -> TurnResult:
    return TurnResult(
        ok=False, error=error, failure=kind, meta=meta or {}, written=written, backend_id=backend_id
    )


def _too_slow(ending: Ending, name: str, settings: CommandSettings) -> str:
    if ending is Ending.SILENT:
        return f"{name} printed nothing for {settings.idle_timeout_s:g} s and was ended."
    return f"{name} was not done after {settings.timeout_s:g} s and was ended."


def _status(status: int) -> str:
    return f"it was ended by signal {-status}" if status < 0 else f"it failed with status {status}"


def _said(output: str) -> str:
    """The last line of an output as a sentence for an error text, or ""."""
    lines = [safe_label(line, 300) for line in without_escapes(output).splitlines()[-20:]]
    said = [line for line in lines if line]
    return f" It said: {mask(said[-1])}" if said else ""


def _meta(outcome: Outcome, stderr: str) -> dict[str, object]:
    lines = without_escapes(stderr).splitlines()[-_DIAGNOSTIC_LINES:]
    return {
        "ending": str(outcome.ending),
        "status": outcome.status,
        "stderr": [mask(safe_label(line, 300)) for line in lines],
        "dropped_bytes": outcome.stdout.dropped + outcome.stderr.dropped,
        "survivors": list(outcome.survivors),
    }
