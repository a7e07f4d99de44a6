"""`isola explain`: why a message went where it went, and what followed."""

from __future__ import annotations

import dataclasses

import click

from isola_core.model import Attribution, DecisionState, DecisionView, Stage, WriteTaskState
from isola_core.service.explain import Explanation
from isola_core.service.explain import explain as explanation_of
from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.output import (
    Names,
    block,
    decision_json,
    delivery_words,
    length,
    line,
    mapping_lines,
    memory_json,
    show,
    state_words,
    when,
)
from isola_tui.cli.program import opened


@click.group(short_help="Say why a message went where it went.")
def explain() -> None:
    """Say in plain words what is stored about something."""


@explain.command()
@click.argument("decision_id", metavar="ID")
@with_invocation
def decision(invocation: Invocation, decision_id: str) -> None:
    """Explain a decision: stage, evidence, attempts, memories, and what was taken back."""
    with opened(invocation) as program:
        found = program.call(explanation_of(program.runtime.core, decision_id))
        if invocation.json:
            print_json(_json(found))
        else:
            _print(found, program.names())


def _json(found: Explanation) -> dict[str, object]:
    return {
        "decision": decision_json(found.decision),
        "successor": found.successor,
        "attempts": [dataclasses.asdict(each) for each in found.attempts],
        "writes": [dataclasses.asdict(each) for each in found.writes],
        "rewinds": [dataclasses.asdict(each) for each in found.rewinds],
        "memories": [memory_json(each) for each in found.memories],
        "retired_memories": list(found.retired_memories),
    }


def _print(found: Explanation, names: Names) -> None:
    view = found.decision
    show(
        mapping_lines(
            {
                "decision": view.id,
                "message": f"{view.message.id}, {when(view.message.created)}",
                "conversation": line(view.message.conversation),
                "project": names.target(view),
                "state": f"{state_words(view)}{_window(view)}",
            }
        )
    )
    show(block(view.message.text[:2_000], "    "))
    if len(view.message.text) > 2_000:
        show(f"    … {len(view.message.text):,} characters in all")
    show()
    for each in _why(view, names):
        show(each)
    for title, lines in (
        ("delivery", _attempts(found)),
        ("memory", _memories(found)),
        ("taken back", _taken_back(found)),
    ):
        if lines:
            show()
            show(title)
            for each in lines:
                show(f"  {each}")


def _window(view: DecisionView) -> str:
    if view.state is not DecisionState.TENTATIVE:
        return ""
    if view.held:
        return ", its window is held open"
    if view.deadline is None:
        return ", its window opens when it is sent"
    return f", becomes final at {when(view.deadline)} if its turn has ended"


_STAGES = {
    Stage.EXPLICIT: "you addressed the project in the text",
    Stage.REFERENCE: "other projects were only referred to",
    Stage.LOW_SIGNAL: "it carries on with the conversation's last project",
    Stage.JUDGEMENT: "a judge weighed the projects",
    Stage.CHOSEN: "you chose the project",
}


def _why(view: DecisionView, names: Names) -> list[str]:
    about: Attribution = view.attribution
    judge = f", {line(about.judge)} judge" if about.judge else ""
    lines = [
        "why",
        f"  {about.stage}{judge}: {_STAGES[about.stage]}",
        f"  {line(about.reason, 500)} (confidence {about.confidence:.2f}, "
        f"{about.latency_ms:.1f} ms)",
    ]
    for each in about.candidates:
        chosen = "→" if each.project == view.project else " "
        name = names.of(each.project)
        lines.append(f"  {chosen} {name}  {each.confidence:.2f}  {line(each.reason)}".rstrip())
    if about.runner_up is not None:
        lines.append(f"  runner-up: {names.of(about.runner_up.project)}")
    if about.referenced:
        lines.append("  only mentioned: " + ", ".join(map(names.of, about.referenced)))
    if about.new_project:
        lines.append("  it looks like the start of something unregistered")
    return lines


def _attempts(found: Explanation) -> list[str]:
    lines = []
    for each in found.attempts:
        took = ""
        if each.written is not None and each.ended is not None:
            took = f", answered after {length(each.ended - each.written)}"
        sent = f"sent {when(each.written)}" if each.written is not None else "never left Isola"
        failure = f" [{each.failure}]" if each.failure else ""
        error = f": {line(each.error, 500)}" if each.error else ""
        lines.append(
            f"attempt {each.attempt}  {each.state.value}{failure}  {sent}{took}{error}".rstrip()
        )
        if each.proof:
            lines.append(f"  proof: {line(each.proof)}")
    if not lines:
        return [delivery_words(found.decision)]
    if found.decision.reply:
        lines += ["reply", *block(found.decision.reply[:2_000], "  ").split("\n")]
    return lines


def _memories(found: Explanation) -> list[str]:
    lines = []
    for task in found.writes:
        match task.state:
            case WriteTaskState.PENDING:
                words = "waits until the decision is final"
            case WriteTaskState.RUNNING:
                words = "is being written"
            case WriteTaskState.DONE:
                words = line(task.result)
            case WriteTaskState.CANCELLED | WriteTaskState.FAILED:
                words = f"{task.state.value.lower()}: {line(task.result)}"
        lines.append(f"write {task.ordinal}  {words}")
    lines += [f"{each.id}  {each.kind}  {line(each.content)}" for each in found.memories]
    lines += [f"{each}  retired" for each in found.retired_memories]
    return lines


def _taken_back(found: Explanation) -> list[str]:
    lines = []
    if found.decision.previous:
        lines.append(f"this corrects {found.decision.previous}")
    if found.successor:
        lines.append(f"{found.successor} corrected this")
    for each in found.rewinds:
        words = {"PENDING": "the session must still forget the turn"}.get(
            each.state.value, line(each.note, 10_000)
        )
        tries = f" (tried {each.attempts} times: {line(each.note)})" if each.attempts else ""
        lines.append(f"rewind  {each.state.value}  {words}{tries}")
    return lines
