"""The interactive side of `isola chat`: one line, one message; cards answered right there.

Turns and ticks go on beside the prompt. Ctrl-C while an answer is waited for ends the wait, not the
turn; at the empty prompt it ends the program, as the end of input does.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

from isola_core.errors import IsolaError, NotFound
from isola_core.model import (
    LIVE_DELIVERIES,
    Candidate,
    DecisionState,
    DecisionView,
    DeliveryState,
    Target,
)
from isola_core.service.delegated import Accepted
from isola_tui.cli.chat import Talk
from isola_tui.cli.correct import print_corrected
from isola_tui.cli.invocation import EXIT_FAILED, EXIT_INTERRUPTED, print_refusal
from isola_tui.cli.output import first_line, line, note, show
from isola_tui.cli.questions import Questions
from isola_tui.cli.withdraw import print_withdrawn
from isola_tui.conversation import has_terminal

UNENDED: Final = LIVE_DELIVERIES | {DeliveryState.PENDING}

HELP: Final = """\
A line is a message. Address a project with @name, or let it be attributed.
  1, 2, ... or a project's name  answers the card that is open
  :confirm PROJECT[/LANE]        the same, for a card of the last message
  :correct PROJECT[/LANE]        wrong project: the last message goes there instead
  :withdraw                      takes the last message back altogether
  :stop                          stops the running turn of the last message
  :answer                        asks again what an agent asks, then waits on
  :unstored                      sends the text that was refused for its credential
  :projects                      lists the projects
  :quit                          ends (so does Ctrl-D)
  ::text                         sends ":text" as a message
"""


def converse(talk: Talk) -> int:
    """Read messages and commands until the input ends; the exit code."""
    return _Prompt(talk).run() if not talk.as_json else _each_line(talk)


def _each_line(talk: Talk) -> int:
    """For programs: every line is a message, every message an object. The worst exit code."""
    worst = 0
    while (text := _read("", talk.program.questions)) is not None:
        if text.strip():
            worst = max(worst, talk.say(text), key=_severity)
        if worst == EXIT_INTERRUPTED:
            break
    return worst


def _severity(code: int) -> int:
    return {0: 0, 3: 1, 1: 2, EXIT_INTERRUPTED: 3}.get(code, 2)


class _Prompt:
    """A conversation with a person."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        talk.prompting = True
        self._person = has_terminal()
        self._over = False
        self._worst = 0

    def run(self) -> int:
        """Until the input ends: 0, or for a pipe the worst code that a message deserved."""
        if self._person:
            show("isola chat: a line is a message; :help lists commands, Ctrl-D ends")
        while not self._over:
            questions = self._talk.program.questions
            sign = self._sign() if self._person else ""
            questions.announcing = self._person
            try:
                text = _read(sign, questions)
            except KeyboardInterrupt:
                show()
                return EXIT_INTERRUPTED
            finally:
                questions.announcing = False
            if text is None:
                break
            if text.strip():
                self._hear(text)
                sys.stdout.flush()
        return 0 if self._person else self._worst

    def _sign(self) -> str:
        card = self._card()
        if card is None and self._talk.program.questions.open():
            return "[an agent asks: :answer] "
        if card is None:
            return "› " if (sys.stdout.encoding or "").lower().startswith("utf") else "> "
        numbers = f"1-{len(card.attribution.candidates)}, " if card.attribution.candidates else ""
        return f"[{numbers}name, or a new message] "

    def _hear(self, text: str) -> None:
        """One line: an answer to the open card, a command, or a message."""
        talk = self._talk
        try:
            if self._person and (target := self._answer(text)) is not None:
                self._confirm(target)
            elif text.startswith(":") and not text.startswith("::"):
                self._command(text)
            else:
                code = talk.say(text[1:] if text.startswith("::") else text)
                self._worst = max(self._worst, code, key=_severity)
        except KeyboardInterrupt:
            note("isola: interrupted")
        except IsolaError as error:
            print_refusal(error, as_json=False)
            self._worst = max(self._worst, EXIT_FAILED, key=_severity)

    # -- the last message

    def _last(self) -> list[DecisionView]:
        """The decisions about the last message, as they are now."""
        accepted = self._talk.accepted
        if accepted is None:
            return []
        service = self._talk.program.runtime.service
        return [self._talk.program.call(service.decision(each.id)) for each in accepted.decisions]

    def _card(self) -> DecisionView | None:
        waiting = DecisionState.WAITING_CONFIRMATION
        return next((each for each in self._last() if each.state is waiting), None)

    def _answer(self, text: str) -> Target | None:
        """The target that this line chooses for the open card; None: it is no answer."""
        card = self._card()
        if card is None:
            return None
        candidates: tuple[Candidate, ...] = card.attribution.candidates
        word = text.strip()
        if word.isascii() and word.isdigit() and 1 <= int(word) <= len(candidates):
            return Target(candidates[int(word) - 1].project)
        with suppress(NotFound):
            return self._talk.program.target(word)
        return None

    def _replace(self, old: DecisionView, new: DecisionView) -> None:
        accepted = self._talk.accepted
        assert accepted is not None
        now = tuple(new if each.id == old.id else each for each in accepted.decisions)
        self._talk.accepted = Accepted(now)

    # -- what a line may do

    def _command(self, text: str) -> None:
        word, _, rest = text[1:].strip().partition(" ")
        rest = rest.strip()
        match word, bool(rest):
            case "help", False:
                show(HELP.rstrip())
            case (("quit" | "q"), False):
                self._over = True
            case "projects", False:
                for each in self._talk.program.call(self._talk.program.runtime.projects.all()):
                    show(f"  {line(each.name, 60)}  {line(each.description, 120)}".rstrip())
            case "confirm", True:
                self._confirm(self._talk.program.target(rest))
            case "correct", True:
                self._correct(self._talk.program.target(rest))
            case "stop", False:
                self._stop()
            case "answer", False:
                self._answer_agents()
            case "withdraw", False:
                self._withdraw()
            case "unstored", False if self._talk.refused is not None:
                self._talk.say(self._talk.refused, unstored=True)
            case _:
                note(f"isola: {first_line(text)!r} is no command; :help lists them, :: sends it")

    def _confirm(self, target: Target) -> None:
        card = self._card()
        if card is None:
            note("isola: no card is open; isola decisions lists older ones")
            return
        program = self._talk.program
        program.call(program.runtime.service.confirm(card.id, target))
        self._talk.await_answers()

    def _stop(self) -> None:
        program = self._talk.program
        running = [each for each in self._last() if each.delivery in UNENDED]
        if not running:
            note("isola: no turn of the last message is running")
            return
        for each in running:
            program.call(program.runtime.service.interrupt(each.id))
        self._talk.await_answers()

    def _answer_agents(self) -> None:
        questions = self._talk.program.questions
        if not questions.open():
            note("isola: no agent asks anything")
            return
        questions.answer_all(lambda: False)
        if self._talk.accepted is not None:
            self._talk.await_answers()

    def _correct(self, target: Target) -> None:
        sent = self._newest_sent()
        if sent is None:
            return
        program = self._talk.program
        done = program.call(program.runtime.service.correct(sent.id, target))
        self._replace(done.old, done.new)
        print_corrected(program.forgotten(done.old.id), done.new, done.undone, program.names())
        self._talk.await_answers()

    def _withdraw(self) -> None:
        views = [each for each in self._last() if each.state is not DecisionState.WITHDRAWN]
        if not views:
            note("isola: there is no message to take back")
            return
        program = self._talk.program
        for each in views:
            done = program.call(program.runtime.service.withdraw(each.id))
            print_withdrawn(program.forgotten(each.id), done.undone, program.names())

    def _newest_sent(self) -> DecisionView | None:
        views = [each for each in self._last() if each.project is not None]
        if len(views) == 1:
            return views[0]
        if views:
            note("isola: the message went to several projects: isola correct DECISION PROJECT")
        else:
            note("isola: there is no message to correct; :confirm answers a card")
        return None


def _read(sign: str, questions: Questions) -> str | None:
    """The next line without its end, None at the end of input."""
    if not sign:
        return questions.line()
    with suppress(ImportError):
        import readline  # noqa: F401 - input() edits lines with it, and takes more than 4,095 bytes
    sys.stdout.flush()
    try:
        return input(sign)
    except EOFError:
        show()
        return None
    except UnicodeDecodeError:
        note("isola: this line is no text in the terminal's encoding; nothing was sent")
        return ""
