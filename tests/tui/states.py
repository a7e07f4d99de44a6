"""The states that the snapshot tests compare and that `scripts/screenshots` draws.

Each is a function that brings a running stage into one state; `STATES` says for each at which
sizes and in which themes and languages it is looked at.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from isola_core.model import Attribution, Candidate, DecisionView, DeliveryState, Stage
from isola_core.ports import Question, SessionRef, TurnEvent, TurnEventKind
from isola_core.projects import NewProject
from isola_core.store import decisions, deliveries
from isola_core.store.transaction import Transaction
from tests.tui.stage import CONVERSATION, PROJECTS, Running, say

HUGE, WIDE, NORMAL, SMALL = (200, 60), (120, 40), (80, 24), (60, 15)

ROLLBACK = "roll back the invoice migration and keep the audit rows"
RANKING = "the ranking of two-word queries got worse since Friday, please look"


@dataclass(frozen=True, slots=True)
class State:
    """One picture."""

    name: str
    arrange: Callable[[Running], Awaitable[object]]
    size: tuple[int, int] = NORMAL
    projects: Sequence[NewProject] = PROJECTS
    language: str = "en"
    theme: str = ""
    readme: bool = False
    """Whether its picture is shown to people who have not installed the program yet."""


async def first_start(stage: Running) -> None:
    await stage.pilot.pause()


async def typing(stage: Running) -> None:
    stage.home.entry.load_message("the dunning run of billing stops half way")
    await stage.pilot.pause()


async def chosen_by_hand(stage: Running) -> None:
    await typing(stage)
    await stage.pilot.press("tab")


async def unsure(stage: Running) -> None:
    stage.home.entry.load_message("make it faster")
    await stage.pilot.pause()


async def conversation(stage: Running) -> None:
    """Three messages at three moments, one of them committed."""
    first = await say(stage.runtime, ROLLBACK, "billing")
    await stage.until(lambda: first.id in stage.home.board.decisions)
    await stage.answered(first.id)
    stage.clock.advance(301)
    await stage.runtime.recovery.tick()
    second = await say(stage.runtime, RANKING, "search")
    await stage.until(lambda: second.id in stage.home.board.decisions)
    await stage.answered(second.id)
    stage.clock.advance(72)
    third = await say(stage.runtime, "参考计费那套写一页文档", "docs")
    await stage.until(lambda: third.id in stage.home.board.decisions)
    await stage.answered(third.id)
    stage.clock.advance(8)
    stage.home.draw()
    await stage.pilot.pause()


async def card(stage: Running) -> DecisionView:
    """A message that nobody can place, after a conversation."""
    await conversation(stage)
    waiting = await put_card(stage)
    stage.clock.advance(1)
    return waiting


async def put_card(stage: Running) -> DecisionView:
    text = "make it faster and tell me what you changed"
    accepted = await say(stage.runtime, text, conversation="elsewhere")
    attribution = Attribution(
        Stage.JUDGEMENT,
        0.48,
        "two projects fit about equally well",
        candidates=(
            Candidate("search", 0.48, "words of its past: faster, index"),
            Candidate("billing", 0.41, "the last message went there"),
        ),
        judge="local",
    )
    await stage.runtime.store.write(
        lambda tx: decisions.explain_decision(tx, accepted.id, attribution)
    )
    await stage.until(
        lambda: (
            accepted.id in stage.home.board.decisions
            and stage.view(accepted.id).attribution == attribution
        )
    )
    return stage.view(accepted.id)


async def card_answering(stage: Running) -> None:
    await card(stage)
    await stage.pilot.press("ctrl+t")
    await stage.pilot.pause()


async def corrected(stage: Running) -> None:
    first = await say(stage.runtime, RANKING, "billing")
    await stage.until(lambda: first.id in stage.home.board.decisions)
    await stage.answered(first.id)
    await stage.pilot.press("ctrl+r")
    await stage.pilot.press(*"sea")
    await stage.pilot.press("enter")
    await stage.until(lambda: stage.newest.previous == first.id)
    await stage.answered(stage.newest.id)
    await stage.until(lambda: stage.view(first.id).rewind == "DONE")


async def choosing(stage: Running) -> None:
    await conversation(stage)
    await stage.pilot.press("ctrl+r")
    await stage.pilot.pause()


async def menu(stage: Running) -> None:
    await conversation(stage)
    await stage.pilot.press("ctrl+o")
    await stage.pilot.pause()


async def why(stage: Running) -> None:
    await conversation(stage)
    await stage.pilot.press("f2")
    await stage.until(lambda: "D" in stage.screen_text)


async def selected_and_held(stage: Running) -> None:
    await conversation(stage)
    await stage.pilot.press("f3", "f3", "f6")
    await stage.until(lambda: "held" in stage.screen_text)


async def end_delivery(
    stage: Running, view: DecisionView, state: DeliveryState, error: str
) -> None:
    """Make a delivery end badly, as a backend that has gone would."""

    def work(tx: Transaction) -> None:
        newest = deliveries.newest_delivery(tx, view.id)
        assert newest is not None
        deliveries.move_delivery(tx, newest, state, error=error)

    await stage.runtime.store.write(work)
    await stage.until(lambda: stage.view(view.id).delivery is state)


async def failures(stage: Running) -> None:
    """A failed and an unknown delivery."""
    await conversation(stage)
    stop_dispatching(stage)
    failed = await say(stage.runtime, "ship the handbook", "docs")
    unknown = await say(stage.runtime, "rebuild the index over night", "search")
    await stage.until(lambda: unknown.id in stage.home.board.decisions)
    await end_delivery(
        stage, failed, DeliveryState.FAILED, "the endpoint http://127.0.0.1:11434 refuses"
    )
    await to_unknown(stage, unknown)


async def to_unknown(stage: Running, view: DecisionView) -> None:
    """A delivery whose program ended while the text was on its way."""
    stop_dispatching(stage)
    await end_delivery(stage, view, DeliveryState.RUNNING, "")
    await end_delivery(stage, view, DeliveryState.WRITTEN, "")
    error = "the program ended while it was on its way"
    await end_delivery(stage, view, DeliveryState.UNKNOWN, error)


def stop_dispatching(stage: Running) -> None:
    """From here on nothing is delivered, so that a state stays."""
    for task in stage.app._tasks:
        task.cancel()


async def streaming(stage: Running) -> DecisionView:
    """A turn that is running, with the reply so far."""
    await conversation(stage)
    stop_dispatching(stage)
    view = await say(stage.runtime, "list what the index holds", "search")
    await stage.until(lambda: view.id in stage.home.board.decisions)
    await end_delivery(stage, view, DeliveryState.RUNNING, "")
    await end_delivery(stage, view, DeliveryState.WRITTEN, "")
    live = stage.runtime.dispatcher.live
    live.hear(view.id, TurnEvent(TurnEventKind.TOOL, "reads index/segments.json"))
    text = "The index holds:\n\n" + "\n".join(
        f"- segment {n}: {n * 731} documents" for n in range(9)
    )
    live.hear(view.id, TurnEvent(TurnEventKind.TEXT, text))
    await stage.until(lambda: "segment 8" in stage.screen_text)
    return view


async def question(stage: Running) -> None:
    """An agent that asks for a permission."""
    view = await streaming(stage)
    session = stage.view(view.id).session
    assert session is not None
    ask(stage, session, "search")
    await stage.until(lambda: "Bash" in stage.screen_text)
    stage.clock.advance(1)
    stage.home.draw()
    await stage.pilot.pause()


def ask(stage: Running, session: str, project: str) -> None:
    live = stage.runtime.dispatcher.live
    live.sessions[session] = SessionRef(session, project, f"proj:{project}", 1)
    live.questions[session] = (
        Question(
            "q1",
            "May I run this command?",
            "rm -rf build/index\nmake index",
            (("yes", "Yes, this once"), ("always", "Yes, and do not ask again"), ("no", "No")),
            tool="Bash",
        ),
    )
    live.changed()


async def secret(stage: Running) -> None:
    stage.home.entry.load_message("the key of billing is sk-ant-api03-" + "Ab3" * 20)
    await stage.pilot.pause()
    await stage.pilot.press("enter")
    await stage.until(lambda: stage.home.notice.text)


async def help_page(stage: Running) -> None:
    await stage.pilot.press("f1")
    await stage.pilot.pause()


async def form(stage: Running) -> None:
    await stage.pilot.press("ctrl+n")
    await stage.pilot.press(*"shop")
    await stage.pilot.pause()


async def palette(stage: Running) -> None:
    await stage.pilot.press("ctrl+p")
    await stage.pilot.pause(0.3)


async def offered(stage: Running) -> None:
    await conversation(stage)
    await stage.type("ask @")
    await stage.pilot.press("down")
    await stage.until(lambda: stage.home.query_one("#offers").display)


async def locked(stage: Running) -> None:
    await typing(stage)
    await stage.pilot.press("ctrl+l")
    await stage.until(lambda: stage.home.entry.has_class("-locked"))


async def raw(stage: Running) -> None:
    await conversation(stage)
    stage.home.entry.load_message("@billing /compact")
    await stage.pilot.press("ctrl+g", "r")
    await stage.until(lambda: stage.target_title.startswith("⇒ billing"))


async def busy(stage: Running) -> None:
    """A session works, and one message waits for it."""
    await streaming(stage)
    await say(stage.runtime, "and count them", "search")
    stage.home.entry.load_message("@search then drop the oldest one")
    await stage.until(lambda: "queues behind 2" in stage.target_title)


async def several(stage: Running) -> None:
    stage.home.entry.load_message("@billing @search/tests @docs the fiscal year begins in April")
    await stage.until(lambda: "docs" in stage.target_title)


async def send_as(stage: Running) -> None:
    await typing(stage)
    await stage.pilot.press("ctrl+g")
    await stage.until(lambda: stage.app.screen is not stage.home)


NOBODY: tuple[NewProject, ...] = ()
MANY = (
    *PROJECTS,
    *(replace(PROJECTS[0], id=f"p{n}", name=f"project number {n}", aliases=()) for n in range(14)),
)

STATES = (
    State("first-start", first_start, projects=NOBODY, readme=True),
    State("first-start-zh", first_start, projects=NOBODY, language="zh"),
    State("ready", first_start, WIDE),
    State("typing", typing, readme=True),
    State("chosen-by-hand", chosen_by_hand),
    State("unsure", unsure),
    State("conversation-wide", conversation, WIDE, readme=True),
    State("conversation", conversation),
    State("conversation-small", conversation, SMALL, readme=True),
    State("conversation-light", conversation, WIDE, theme="textual-light", readme=True),
    State("conversation-zh", conversation, WIDE, language="zh", readme=True),
    State("card", card, WIDE, readme=True),
    State("card-answering", card_answering, readme=True),
    State("card-answering-small", card_answering, SMALL),
    State("corrected", corrected, readme=True),
    State("choosing", choosing, readme=True),
    State("menu", menu),
    State("why", why, readme=True),
    State("selected-and-held", selected_and_held),
    State("failures", failures, WIDE, readme=True),
    State("failures-small", failures, SMALL),
    State("streaming", streaming),
    State("question", question, WIDE, readme=True),
    State("question-small", question, SMALL),
    State("secret", secret),
    State("help", help_page, NORMAL),
    State("form", form, projects=NOBODY),
    State("many-projects", conversation, WIDE, projects=MANY, readme=True),
    State("many-projects-narrow", conversation, NORMAL, projects=MANY),
    State("palette", palette),
    State("offered", offered, readme=True),
    State("offered-small", offered, SMALL),
    State("locked", locked, readme=True),
    State("locked-small", locked, SMALL),
    State("raw", raw),
    State("busy", busy, WIDE, readme=True),
    State("busy-small", busy, SMALL),
    State("several", several),
    State("send-as", send_as),
    State("send-as-zh", send_as, language="zh"),
    State("conversation-huge", conversation, HUGE),
    State("conversation-ansi", conversation, WIDE, theme="ansi", readme=True),
    State("choosing-ansi", choosing, theme="ansi"),
    State("selected-and-held-ansi", selected_and_held, theme="ansi"),
    State("conversation-no-color", conversation, WIDE, theme="no-color"),
    State("selected-and-held-no-color", selected_and_held, theme="no-color"),
    State("failures-no-color", failures, WIDE, theme="no-color"),
    State("card-answering-no-color", card_answering, theme="no-color"),
    State("choosing-no-color", choosing, theme="no-color"),
    State("locked-no-color", locked, theme="no-color"),
    State("card-light", card, WIDE, theme="light"),
)

__all__ = ["CONVERSATION", "STATES", "State"]
