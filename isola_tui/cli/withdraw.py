"""`isola withdraw`: takes a message back altogether."""

from __future__ import annotations

import click

from isola_core.model import DecisionView
from isola_core.service.outbox import Undone
from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.output import (
    Names,
    decision_json,
    first_line,
    show,
    undone_json,
    undone_lines,
)
from isola_tui.cli.program import opened


@click.command(short_help="Take a message back altogether.")
@click.argument("decision")
@click.option("--wait/--no-wait", default=True, help="Wait until the session forgot it.")
@with_invocation
def withdraw(invocation: Invocation, decision: str, wait: bool) -> None:
    """Take the message of DECISION back: it goes nowhere and leaves nothing behind."""
    with opened(invocation) as program:
        done = program.call(program.runtime.service.withdraw(decision))
        view = done.decision
        if wait:
            view = program.forgotten(view.id)
        if invocation.json:
            print_json(
                {
                    "decision": decision_json(view),
                    "text": done.text,
                    "undone": undone_json(done.undone),
                }
            )
            return
        print_withdrawn(view, done.undone, program.names())


def print_withdrawn(view: DecisionView, undone: Undone, names: Names) -> None:
    """What was taken back, what was undone and what was not."""
    target = f" from {names.target(view)}" if view.project else ""
    show(f'withdrawn{target}: "{first_line(view.message.text)}"  {view.id}')
    for each in undone_lines(view, undone, names):
        show(each)
