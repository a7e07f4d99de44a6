"""`isola tick`: what time, or a crash, has left to do."""

from __future__ import annotations

import dataclasses

import click

from isola_tui.cli.invocation import EXIT_FAILED, Invocation, print_json, with_invocation
from isola_tui.cli.output import line, note, show
from isola_tui.cli.program import opened


@click.command(short_help="Do once what is due: commits, writes, rewinds.")
@click.option(
    "--deliver", is_flag=True, help="Send what waits in this machine's outbox too, and rewind."
)
@with_invocation
def tick(invocation: Invocation, deliver: bool) -> int:
    """Commit windows that are over, write memories, give cards to messages that a crash left.

    A running isola does this by itself, every second.
    """
    with opened(invocation) as program:
        runtime = program.runtime
        done = program.call(runtime.recovery.tick())
        if deliver:
            program.attend(runtime.dispatcher.settle())
        if invocation.json:
            print_json({**dataclasses.asdict(done), "delivered": deliver})
        else:
            counts = {
                "committed": done.committed,
                "memories written": done.written,
                "kept out by a gate": done.refused,
                "writes tried again": done.requeued,
                "learned from": done.learned,
                "cards made": done.carded,
            }
            did = [f"{count} {what}" for what, count in counts.items() if count]
            show(", ".join(did) if did else "nothing was due")
            for each in done.errors:
                note(f"isola: {line(each)}")
        return EXIT_FAILED if done.errors else 0
