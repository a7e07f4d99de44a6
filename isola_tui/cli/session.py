"""`isola session`: what can be done with a project's session itself."""

from __future__ import annotations

import click

from isola_core.service.session_admin import SessionAdmin
from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.output import note, show
from isola_tui.cli.program import opened


@click.group(short_help="Start a project's session afresh.")
def session() -> None:
    """A session is a project's conversation with its backend."""


@session.command()
@click.argument("project", metavar="PROJECT[/LANE]")
@with_invocation
def reset(invocation: Invocation, project: str) -> None:
    """Give PROJECT's session an empty history. Memories stay; the backend keeps the old one."""
    with opened(invocation) as program:
        runtime = program.runtime
        admin = SessionAdmin(runtime.core, runtime.harness, runtime.processes)
        target = program.target(project)
        done = program.call(admin.reset(target))
        if invocation.json:
            print_json(
                {
                    "session": done.session.key,
                    "generation": done.session.generation,
                    "project": done.session.project,
                    "lane": done.session.lane,
                    "harness": done.harness,
                    "waiting": done.waiting,
                    "unknown": done.unknown,
                }
            )
            return
        name = program.names().of(target.project, target.lane)
        show(f"{name} starts afresh (generation {done.session.generation}, {done.harness})")
        if done.waiting:
            show(f"  {done.waiting} waiting in the outbox go to the fresh session")
        if done.unknown:
            note(
                f"isola: of {done.unknown} nobody can tell any more whether they had arrived: "
                "isola decisions, isola resolve"
            )
