"""`isola decisions`: where messages went, newest last."""

from __future__ import annotations

import click

from isola_core.model import DecisionState
from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.output import (
    decision_json,
    delivery_words,
    first_line,
    show,
    state_words,
    table,
    when,
)
from isola_tui.cli.program import opened


@click.command(short_help="List where messages went.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000))
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([each.value for each in DecisionState], case_sensitive=False),
    help="Only these; may be given more than once.",
)
@click.option("--project", metavar="PROJECT", help="Only those of one project.")
@click.option("--conversation", metavar="NAME", help="Only those of one conversation.")
@with_invocation
def decisions(
    invocation: Invocation,
    limit: int,
    states: tuple[str, ...],
    project: str | None,
    conversation: str | None,
) -> None:
    """List the newest decisions, the newest last."""
    with opened(invocation) as program:
        only = None if project is None else program.project(project, retired=True).id
        found = program.call(
            program.runtime.service.latest(
                limit, [DecisionState(each) for each in states], only, conversation
            )
        )
        if invocation.json:
            print_json({"decisions": [decision_json(each) for each in found]})
            return
        if not found:
            show("no decisions")
            return
        names = program.names()
        rows = [
            (
                each.id,
                when(each.created),
                names.target(each),
                state_words(each),
                delivery_words(each),
                first_line(each.message.text, 200),
            )
            for each in found
        ]
        show(table(("DECISION", "CREATED", "PROJECT", "STATE", "DELIVERY", "MESSAGE"), rows))
