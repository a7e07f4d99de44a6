"""`isola chat`: messages from the shell or a pipe.

One message with `--text`, all of standard input with `-`, else one message a line. Each is
accepted, sent by this process (or by the one that drives its session already), and its answer
waited for. With `--json` exactly one object a message goes to stdout, one per line (one a decision
where a message addressed several projects).
"""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from isola_core.errors import InvalidInput, IsolaError, SecretRefused
from isola_core.service.delegated import Accepted, Incoming
from isola_core.service.settings import MESSAGE_LIMIT
from isola_tui.cli.invocation import (
    EXIT_FAILED,
    Invocation,
    print_json,
    print_refusal,
    with_invocation,
)
from isola_tui.cli.outcome import (
    print_outcome,
    refused_json,
    status_of,
)
from isola_tui.cli.output import note
from isola_tui.cli.program import Program, opened
from isola_tui.cli.questions import OnQuestion, question_option
from isola_tui.conversation import conversation_of

PLATFORM: Final = "cli"


@click.command(short_help="Send messages from the shell or a pipe.")
@click.argument("source", required=False, metavar="[-]", type=click.Choice(["-"]))
@click.option("--text", metavar="TEXT", help="Send this one message; - reads standard input.")
@click.option("--project", metavar="PROJECT[/LANE]", help="Where it goes; else it is attributed.")
@click.option("--conversation", metavar="NAME", help="Which stream of messages this belongs to.")
@click.option("--event-id", metavar="ID", help="The same id again sends nothing a second time.")
@click.option(
    "--unstored", is_flag=True, help="Send a text with a credential; only a masked copy is stored."
)
@click.option("--wait/--no-wait", default=True, help="Wait for the answer (the default).")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Wait no longer than this.",
)
@question_option
@with_invocation
def chat(
    invocation: Invocation,
    source: str | None,
    text: str | None,
    project: str | None,
    conversation: str | None,
    event_id: str | None,
    unstored: bool,
    wait: bool,
    timeout: float | None,
    on_question: OnQuestion | None,
) -> int:
    """Send messages: --text TEXT, all of standard input with -, else one message a line.

    Without --text at a terminal, a line that begins with : is a command (:help lists them); begin
    it with :: to send it as a message. With --json every line is a message.
    """
    if source is not None and text is not None:
        raise click.UsageError("Give either --text or -, not both.")
    single = source is not None or text is not None
    if event_id is not None and not single:
        raise click.UsageError("--event-id belongs to one message: give it with --text or -.")
    with opened(invocation, on_question) as program:
        runtime = program.runtime
        boot = runtime.processes.me().boot
        talk = Talk(
            program,
            conversation=conversation_of(conversation, os.environ, boot),
            project=project,
            event_id=event_id,
            unstored=unstored,
            wait=wait,
            timeout=timeout,
            as_json=invocation.json,
        )
        if not single:
            from isola_tui.cli.prompt import converse  # only here: the prompt imports readline

            return converse(talk)
        try:
            message = _standard_input() if source == "-" or text == "-" else text
            assert message is not None
        except InvalidInput as error:
            return talk.refuse(error)
        return talk.say(message)


class Talk:
    """Sends the messages of one conversation and prints what becomes of them."""

    def __init__(
        self,
        program: Program,
        *,
        conversation: str,
        project: str | None = None,
        event_id: str | None = None,
        unstored: bool = False,
        wait: bool = True,
        timeout: float | None = None,
        as_json: bool = False,
    ) -> None:
        self.program = program
        self.conversation = conversation
        self.as_json = as_json
        self.wait = wait
        self.timeout = timeout
        self.accepted: Accepted | None = None
        """The last message that was stored."""
        self.refused: str | None = None
        """The text with a credential that was refused last, for sending it unstored."""
        self.prompting = False
        """Whether a person may type commands."""
        self._event_id = event_id
        self._unstored = unstored
        self._targets = () if project is None else (program.target(project),)

    def say(self, text: str, *, unstored: bool = False) -> int:
        """Send one message and print what became of it; the exit code it deserves."""
        incoming = Incoming(
            conversation=self.conversation,
            text=text,
            targets=self._targets,
            event_id=self._event_id,
            platform=PLATFORM,
            unstored=unstored or self._unstored,
        )
        self.refused = None
        try:
            self.accepted = self.program.call(self.program.runtime.service.accept(incoming))
        except IsolaError as error:
            if isinstance(error, SecretRefused):
                self.refused = text
            return self.refuse(error)
        return self.await_answers()

    def refuse(self, error: IsolaError) -> int:
        """Say that a message was not taken, in the shape that every message gets."""
        if not self.as_json:
            print_refusal(error, as_json=False)
            if isinstance(error, SecretRefused):
                how = ":unstored" if self.prompting else "--unstored"
                note(f"isola: {how} sends it all the same and stores a masked copy only")
            return EXIT_FAILED
        print_json(refused_json(error, self.conversation))
        return EXIT_FAILED

    def await_answers(self) -> int:
        """Wait for the answers to the last accepted message and print its decisions."""
        assert self.accepted is not None
        views = list(self.accepted.decisions)
        if self.wait:
            views = self.program.answers([each.id for each in views], self.timeout)
        names = self.program.names()
        statuses = [status_of(each, duplicate=self.accepted.duplicate) for each in views]
        for view, status in zip(views, statuses, strict=True):
            asked = self.program.questions.about(view.id)
            print_outcome(view, status, names, as_json=self.as_json, questions=asked)
        if self.program.interrupted and self.program.questions.open():
            note(f"isola: nothing was allowed; {self._later()}")
        sys.stdout.flush()
        return self.program.code(statuses)

    def _later(self) -> str:
        """What becomes of a question that the wait ended before."""
        if self.prompting:
            return "the agent waits on, :answer asks you again"
        return "the agent's turn ends with this program"


def _standard_input() -> str:
    """All of standard input as one message; bytes that are no UTF-8 become U+FFFD."""
    raw = sys.stdin.buffer.read(MESSAGE_LIMIT + 1)
    if len(raw) > MESSAGE_LIMIT:
        raise InvalidInput(
            f"standard input holds more than {MESSAGE_LIMIT:,} bytes, which is the most that can "
            "be sent; nothing was sent. Put long material into a file of the project and name it."
        )
    return raw.decode("utf-8", "replace").removesuffix("\n")
