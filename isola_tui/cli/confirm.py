"""`isola confirm`: answers a card."""

from __future__ import annotations

import click

from isola_tui.cli.invocation import Invocation, with_invocation
from isola_tui.cli.outcome import print_outcome, status_of
from isola_tui.cli.output import first_line, show
from isola_tui.cli.program import opened
from isola_tui.cli.questions import OnQuestion, question_option


@click.command(short_help="Answer a card: this project it is.")
@click.argument("decision")
@click.argument("project", metavar="PROJECT[/LANE]")
@click.option("--wait/--no-wait", default=True, help="Wait for the answer (the default).")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True))
@question_option
@with_invocation
def confirm(
    invocation: Invocation,
    decision: str,
    project: str,
    wait: bool,
    timeout: float | None,
    on_question: OnQuestion | None,
) -> int:
    """Send the waiting message of DECISION to PROJECT."""
    with opened(invocation, on_question) as program:
        target = program.target(project)
        view = program.call(program.runtime.service.confirm(decision, target))
        if wait:
            (view,) = program.answers([view.id], timeout)
        status = status_of(view)
        if not invocation.json:
            show(f'"{first_line(view.message.text)}"')
        asked = program.questions.about(view.id)
        print_outcome(view, status, program.names(), as_json=invocation.json, questions=asked)
        return program.code([status])
