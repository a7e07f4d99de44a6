"""`isola resolve`: settles a delivery that failed, was stopped, or whose end nobody knows."""

from __future__ import annotations

import click

from isola_tui.cli.invocation import Invocation, with_invocation
from isola_tui.cli.outcome import print_outcome, status_of
from isola_tui.cli.output import first_line, show
from isola_tui.cli.program import opened
from isola_tui.cli.questions import OnQuestion, question_option


@click.command(short_help="Settle a delivery whose outcome is unknown.")
@click.argument("decision")
@click.option("--resend", "act", flag_value="resend", help="Send it again; it may arrive twice.")
@click.option("--arrived", "act", flag_value="arrived", help="You saw it arrive; nothing is sent.")
@click.option("--wait/--no-wait", default=True, help="Wait for the answer (the default).")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True))
@question_option
@with_invocation
def resolve(
    invocation: Invocation,
    decision: str,
    act: str | None,
    wait: bool,
    timeout: float | None,
    on_question: OnQuestion | None,
) -> int:
    """Send the message of DECISION again, or say that it arrived."""
    if act is None:
        raise click.UsageError("Give --resend or --arrived.")
    with opened(invocation, on_question) as program:
        service = program.runtime.service
        resend = act == "resend"
        view = program.call(service.resend(decision) if resend else service.settle(decision))
        if wait and resend:
            (view,) = program.answers([view.id], timeout)
        status = status_of(view)
        if not invocation.json:
            show(f'"{first_line(view.message.text)}"')
        asked = program.questions.about(view.id)
        print_outcome(view, status, program.names(), as_json=invocation.json, questions=asked)
        return program.code([status])
