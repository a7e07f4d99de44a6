"""`isola correct`: wrong project, this one it is."""

from __future__ import annotations

import click

from isola_core.model import DecisionView
from isola_core.service.outbox import Undone
from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.outcome import print_outcome, status_of
from isola_tui.cli.output import (
    Names,
    decision_json,
    first_line,
    note,
    show,
    undone_json,
    undone_lines,
)
from isola_tui.cli.program import opened
from isola_tui.cli.questions import OnQuestion, question_option


@click.command(short_help="Wrong project: move a message.")
@click.argument("decision")
@click.argument("project", metavar="PROJECT[/LANE]")
@click.option(
    "--text", metavar="TEXT", help="The text again, for a message that was sent unstored."
)
@click.option("--wait/--no-wait", default=True, help="Wait for the answer (the default).")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True))
@question_option
@with_invocation
def correct(
    invocation: Invocation,
    decision: str,
    project: str,
    text: str | None,
    wait: bool,
    timeout: float | None,
    on_question: OnQuestion | None,
) -> int:
    """Send the message of DECISION to PROJECT instead; the wrong session forgets it."""
    with opened(invocation, on_question) as program:
        target = program.target(project)
        done = program.call(program.runtime.service.correct(decision, target, text))
        old, new = done.old, done.new
        if wait:
            (new,) = program.answers([new.id], timeout)
            old = old if program.interrupted else program.forgotten(old.id)
        status = status_of(new)
        if invocation.json:
            print_json(
                {
                    "old": decision_json(old),
                    "new": decision_json(new),
                    "undone": undone_json(done.undone),
                    "status": status.value,
                    "duplicate": done.duplicate,
                    "questions": program.questions.about(new.id),
                }
            )
        else:
            names = program.names()
            if done.duplicate:
                note("isola: it was corrected so before; nothing was changed")
            else:
                print_corrected(old, new, done.undone, names)
            print_outcome(new, status, names, as_json=False)
        return program.code([status])


def print_corrected(old: DecisionView, new: DecisionView, undone: Undone, names: Names) -> None:
    """From where to where, what was undone and what was not."""
    moved = f"{names.target(old)} → {names.target(new)}"
    show(f'corrected {moved}: "{first_line(old.message.text)}"  {old.id}')
    for each in undone_lines(old, undone, names):
        show(each)
