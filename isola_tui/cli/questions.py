"""What agents ask while a command waits: a person answers, a program answers, or it is denied.

Nothing is allowed without an answer that names a choice. Enter alone, the end of the input and what
was typed before the question was shown allow nothing; Ctrl-C ends the wait and answers nothing.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, TypeVar

import click

from isola_core.errors import InvalidInput, IsolaError
from isola_core.model import LIVE_DELIVERIES, Project
from isola_core.ports import DENY, OTHER, Question
from isola_core.store import deliveries
from isola_tui.cli.invocation import print_json
from isola_tui.cli.output import Json, Names, block, line, note, show
from isola_tui.cli.standard_input import Bell, Input
from isola_tui.conversation import has_terminal
from isola_tui.runtime import Runtime

DEAF_S: Final = 0.5
"""What is typed within this time of a new question was not meant for it."""

NEEDS_ANSWER: Final = "needs_answer"
"""The status of an object that is a question, and not yet what became of a message."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")
_NUMBERS: Final = re.compile(r"(\d{1,3}(?:\s*,\s*\d{1,3})*)(?:\s+(.*))?", re.DOTALL)


class OnQuestion(StrEnum):
    """What a command does when an agent asks."""

    ASK = "ask"
    DENY = "deny"


def question_option(function: _Function) -> _Function:
    """Add `--on-question`, the argument `on_question`: an `OnQuestion`, None for the default."""
    return click.option(
        "--on-question",
        type=click.Choice([each.value for each in OnQuestion]),
        callback=lambda context, parameter, value: OnQuestion(value) if value else None,
        help="When the agent asks for a permission: ask (default at a terminal; with --json an "
        'object with status "needs_answer" comes, and the next line of input answers it with the '
        "id of a choice) or deny (default without one; the answer lists what was denied).",
    )(function)


class Caller(Protocol):
    """Runs a coroutine beside whatever else runs, from the main thread."""

    def __call__(self, work: Coroutine[Any, Any, _Result], /) -> _Result: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """An open question, who asks it, and the decision whose turn it belongs to."""

    session: str
    project: str
    lane: str
    decision: str | None
    question: Question

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other one."""
        return self.session, self.question.id


class _Gone(Exception):
    """Nobody waits for the answer any more."""


class Questions:
    """Answers the questions of the agents that this process drives, from the main thread.

    `on_question` None means: ask where a person sits at a terminal, else deny.
    """

    def __init__(
        self,
        runtime: Runtime,
        call: Caller,
        on_question: OnQuestion | None = None,
        *,
        as_json: bool = False,
    ) -> None:
        self.bell = Bell()
        self.input = Input()
        self.announcing = False
        """Set while a person types a new message: a question is only told of then."""
        self._runtime = runtime
        self._call = call
        self._as_json = as_json
        self._person = has_terminal() and not as_json
        default = OnQuestion.ASK if self._person else OnQuestion.DENY
        self._on_question = on_question or default
        self._answers: dict[str, list[Json]] = {}
        self._announced: set[tuple[str, str]] = set()
        self._left: set[tuple[str, str]] = set()
        """Questions that could not be answered; the agent may withdraw them."""
        runtime.dispatcher.live.listeners.append(self._heard)

    def answer_all(self, over: Callable[[], bool]) -> None:
        """Answer what is open, one after the other, until the wait for it is over."""
        while not over() and (asked := self._next()) is not None:
            self._answer(asked, over, self._on_question)

    def line(self) -> str | None:
        """The next line of a program's input; None at its end.

        Another process's message may run in a session that this one drives: what its agent asks
        while nothing is waited for here is denied, since the next line is a message.
        """
        while not self.input.has_line:
            while (asked := self._next()) is not None:
                self._answer(asked, lambda: False, OnQuestion.DENY)
            self.input.wait(self.bell)
        return self.input.taken()

    def open(self) -> list[Asked]:
        """What is asked right now."""
        return self._call(self._open())

    def about(self, decision: str) -> list[Json]:
        """What was asked in the turn of a decision, each with its answer; null: none was given."""
        unanswered = [
            {**question_json(each.question), "answer": None}
            for each in self.open()
            if each.decision == decision
        ]
        return self._answers.get(decision, []) + unanswered

    def close(self) -> None:
        """Listen no more."""
        self._runtime.dispatcher.live.listeners.remove(self._heard)
        self.bell.close()

    # -- what is open

    def _heard(self) -> None:
        """Something changed; on the loop's thread."""
        live = self._runtime.dispatcher.live
        if not live.questions:
            return
        self.bell.ring()
        for session, questions in live.questions.items():
            for each in questions:
                if self.announcing and (session, each.id) not in self._announced:
                    project = line(live.sessions[session].project, 60)
                    note(f"\nisola: {project} asks: {line(each.title, 200)}; :answer answers it")
                self._announced.add((session, each.id))

    def _next(self) -> Asked | None:
        return next((each for each in self.open() if each.key not in self._left), None)

    async def _open(self) -> list[Asked]:
        live = self._runtime.dispatcher.live
        found: list[Asked] = []
        for session, questions in list(live.questions.items()):
            ref = live.sessions[session]
            turn = await self._runtime.store.read(
                lambda tx, session=session: [  # type: ignore[misc]
                    each.decision
                    for each in deliveries.open_deliveries(tx, session)
                    if each.state in LIVE_DELIVERIES
                ]
            )
            decision = turn[0] if turn else None
            found += [Asked(session, ref.project, ref.lane, decision, each) for each in questions]
        return found

    def _is_open(self, asked: Asked) -> bool:
        live = self._runtime.dispatcher.live
        return asked.question in live.questions.get(asked.session, ())

    def _name(self, asked: Asked) -> str:
        projects: Sequence[Project] = self._call(self._runtime.projects.all(retired=True))
        return Names(projects).of(asked.project, asked.lane)

    # -- answering

    def _answer(self, asked: Asked, over: Callable[[], bool], how: OnQuestion) -> None:
        try:
            match how:
                case OnQuestion.DENY:
                    self._deny(asked, "--on-question ask, or a terminal, asks you instead")
                case OnQuestion.ASK if self._as_json:
                    self._ask_program(asked, over)
                case OnQuestion.ASK:
                    self._ask_person(asked, over)
        except _Gone:
            if not (over() or self._as_json):
                note("isola: this is not asked any more")
        except IsolaError as error:
            self._left.add(asked.key)
            note(f"isola: the answer did not reach the agent: {line(error.message, 500)}")

    def _give(self, asked: Asked, choice: str, text: str = "") -> None:
        """Answer, and keep what was answered. Raises `NotFound`, `InvalidInput`."""
        dispatcher = self._runtime.dispatcher
        self._call(dispatcher.answer(asked.session, asked.question.id, choice, text))
        self._keep(asked, choice)

    def _keep(self, asked: Asked, answer: str) -> None:
        if asked.decision is not None:
            kept = {**question_json(asked.question), "answer": answer}
            self._answers.setdefault(asked.decision, []).append(kept)

    def _deny(self, asked: Asked, why: str) -> None:
        question = asked.question
        if DENY in dict(question.choices):
            self._give(asked, DENY)
        else:
            self._left.add(asked.key)
            self._call(self._runtime.dispatcher.stop(asked.session))
            self._keep(asked, "stopped")
        if self._as_json:
            return
        detail = f" ({line(question.detail, 200)})" if question.detail.strip() else ""
        note(f"isola: {self._name(asked)} asked: {line(question.title, 200)}{detail}")
        note(f"isola: denied: {why}")

    def _line(self, asked: Asked, over: Callable[[], bool]) -> str | None:
        """The next line; None at the end of input. Raises `_Gone`."""
        while not self.input.has_line:
            if over() or not self._is_open(asked):
                raise _Gone
            self.input.wait(self.bell)
        return self.input.taken()

    def _ask_person(self, asked: Asked, over: Callable[[], bool]) -> None:
        question = asked.question
        tool = f"  ({line(question.tool, 60)})" if question.tool else ""
        show(f"◆ {self._name(asked)} asks: {line(question.title, 500)}{tool}")
        if question.detail.strip():
            show(block(question.detail.strip("\n"), "    "))
        for number, (_, label) in enumerate(question.choices, 1):
            show(f"  {number}  {line(label, 300)}")
        if self._person:
            sys.stdout.flush()
            time.sleep(DEAF_S)
            self.input.forget()
        while True:
            print(f"[1-{len(question.choices)}; Ctrl-C leaves it open] ", end="", flush=True)
            try:
                said = self._line(asked, over)
            except (_Gone, KeyboardInterrupt):
                show()
                raise
            if said is None:
                show()
                return self._deny(asked, "the input ended")
            try:
                return self._give(asked, *_read_answer(said, question))
            except InvalidInput as error:
                note(f"isola: {error.message}")

    def _ask_program(self, asked: Asked, over: Callable[[], bool]) -> None:
        error: Json | None = None
        while True:
            print_json(
                {
                    "status": NEEDS_ANSWER,
                    "project": asked.project,
                    "lane": asked.lane,
                    "decision_id": asked.decision,
                    "question": question_json(asked.question),
                    "error": error,
                }
            )
            sys.stdout.flush()
            said = self._line(asked, over)
            if said is None:
                return self._deny(asked, "the input ended")
            try:
                return self._give(asked, *_read_object(said, asked.question))
            except InvalidInput as refused:
                error = {"code": refused.code, "message": refused.message, "details": {}}


def question_json(question: Question) -> Json:
    """A question for a program: `choices` are the ids that answer it, each with its label."""
    return {
        "id": question.id,
        "title": question.title,
        "tool": question.tool,
        "detail": question.detail,
        "choices": [{"id": each, "label": label} for each, label in question.choices],
    }


def _read_answer(said: str, question: Question) -> tuple[str, str]:
    """The choice (several: joined by commas) and the words behind its number.

    Raises:
        InvalidInput: it is no number of a choice, or words stand behind one that takes none.
    """
    found = _NUMBERS.fullmatch(said.strip())
    numbers = [int(each) for each in found[1].split(",")] if found else []
    if not numbers or not all(1 <= each <= len(question.choices) for each in numbers):
        raise InvalidInput(f"a number from 1 to {len(question.choices)} answers; nothing else does")
    chosen = [question.choices[each - 1][0] for each in numbers]
    words = (found[2] or "").strip() if found else ""
    if words and not set(chosen) <= {DENY, OTHER}:
        raise InvalidInput("this choice takes no words; its number alone answers")
    if chosen == [OTHER] and not words:
        raise InvalidInput(f"say it behind the number: {numbers[0]} YOUR WORDS")
    return ",".join(chosen), words


def _read_object(said: str, question: Question) -> tuple[str, str]:
    """The choice and the words of a program's answer: the id of a choice, or an object.

    Raises:
        InvalidInput: it is neither, or answers another question.
    """
    wanted = 'answer with the id of a choice, or with {"choice": id, "text": words}'
    if not said.lstrip().startswith("{"):
        choice: object = said.strip()
        text: object = ""
    else:
        try:
            given = json.loads(said)
        except ValueError as error:
            raise InvalidInput(wanted) from error
        choice, text = given.get("choice"), given.get("text", "")
        if given.get("question", question.id) != question.id:
            raise InvalidInput(f"the open question is {question.id}")
    if not isinstance(choice, str) or not choice or not isinstance(text, str):
        raise InvalidInput(wanted)
    return choice, text
