"""`isola recall`: ranked search in one project's memory."""

from __future__ import annotations

import click

from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.output import block, memory_json, show, when
from isola_tui.cli.program import opened


@click.command(short_help="Search one project's memory.")
@click.argument("project")
@click.argument("query")
@click.option("-k", "limit", default=5, show_default=True, type=click.IntRange(1, 200))
@with_invocation
def recall(invocation: Invocation, project: str, query: str, limit: int) -> None:
    """Print what PROJECT remembers about QUERY, the best first. Any text is a query."""
    with opened(invocation) as program:
        found_in = program.project(project, retired=True)
        found = program.call(program.runtime.recall(found_in, query, limit))
        if invocation.json:
            print_json({"project": found_in.id, "memories": [memory_json(each) for each in found]})
            return
        if not found:
            show(f"{program.names().of(found_in.id)} remembers nothing about that")
        for each in found:
            show(f"{when(each.created)}  {each.kind}  {each.id}")
            show(block(each.content, "  "))
