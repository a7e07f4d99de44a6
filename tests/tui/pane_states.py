"""States of panes, queue, search and several corrections, for the pictures like `states`."""

from __future__ import annotations

from isola_core.model import DecisionState, DecisionView, DeliveryState, Target
from isola_core.ports import TurnEvent, TurnEventKind
from tests.tui.stage import Running, say
from tests.tui.states import (
    NORMAL,
    RANKING,
    ROLLBACK,
    SMALL,
    WIDE,
    State,
    conversation,
    end_delivery,
    stop_dispatching,
)

FOUND = """\
The migration `2024_11_invoices` is the last one. Rolling it back:

1. stop the **dunning run**
2. `alembic downgrade -1`
3. keep `audit_rows`, they are *not* part of it

```sql
SELECT count(*) FROM audit_rows;  -- 48,210
```
"""


async def pane_opened(stage: Running, number: int, target: Target) -> None:
    """Open a project's pane and wait until it stands there."""
    await stage.pilot.press(f"alt+{number}")
    await stage.until(lambda: stage.home.viewing.target == target)
    await stage.pilot.pause()


async def running(stage: Running, text: str, project: str, reply: str) -> DecisionView:
    """A turn that goes on, with the reply so far."""
    stop_dispatching(stage)
    view = await say(stage.runtime, text, project)
    await stage.until(lambda: view.id in stage.home.board.decisions)
    await end_delivery(stage, view, DeliveryState.RUNNING, "")
    await end_delivery(stage, view, DeliveryState.WRITTEN, "")
    live = stage.runtime.dispatcher.live
    live.hear(view.id, TurnEvent(TurnEventKind.TOOL, "reads migrations/2024_11_invoices.py"))
    live.hear(view.id, TurnEvent(TurnEventKind.TEXT, reply))
    return view


async def pane(stage: Running) -> None:
    """A session at work: its past, the reply so far, two messages that wait."""
    await conversation(stage)
    await running(stage, ROLLBACK, "billing", FOUND)
    for text in ("then send the reminders of November", "and tell me how many rows it touched"):
        waiting = await say(stage.runtime, text, "billing")
    await stage.until(lambda: waiting.id in stage.home.board.decisions)
    await pane_opened(stage, 1, Target("billing"))
    await stage.until(lambda: "48,210" in stage.screen_text)


async def pane_excised(stage: Running) -> None:
    """A session that has forgotten a turn."""
    wrong = await say(stage.runtime, RANKING, "billing")
    await stage.until(lambda: wrong.id in stage.home.board.decisions)
    await stage.answered(wrong.id)
    await stage.runtime.service.correct(wrong.id, Target("search"))
    await stage.until(lambda: stage.view(wrong.id).rewind == "DONE")
    right = await say(stage.runtime, ROLLBACK, "billing")
    await stage.until(lambda: right.id in stage.home.board.decisions)
    await stage.answered(right.id)
    await pane_opened(stage, 1, Target("billing"))
    await stage.until(lambda: "corrected to search" in stage.screen_text)


async def pane_empty(stage: Running) -> None:
    await pane_opened(stage, 1, Target("billing"))


async def unread(stage: Running) -> None:
    """Answers of other projects while one pane is in view."""
    await pane_opened(stage, 2, Target("docs"))
    await conversation(stage)
    await stage.until(lambda: len(stage.home.board.unread) == 2)


async def edit_waiting(stage: Running) -> None:
    await pane(stage)
    await stage.pilot.press("f3", "alt+e")
    await stage.pilot.pause()


async def search(stage: Running) -> None:
    await conversation(stage)
    await stage.pilot.press("ctrl+underscore", *"the")
    await stage.until(lambda: "messages" in stage.screen_text)


async def go_to(stage: Running) -> None:
    await unread(stage)
    await stage.pilot.press("ctrl+backslash")
    await stage.pilot.pause()


async def marked(stage: Running) -> None:
    await conversation(stage)
    await stage.pilot.press("f3", "ctrl+circumflex_accent", "f3", "ctrl+circumflex_accent")
    await stage.until(lambda: "2 messages marked" in stage.screen_text)


async def corrected_several(stage: Running) -> None:
    """Two messages moved together, and what their sessions forgot."""
    await marked(stage)
    await stage.pilot.press("ctrl+r", *"billing", "enter")
    moved = (DecisionState.CORRECTED,)
    await stage.until(
        lambda: sum(each.state in moved for each in stage.home.board.decisions.values()) == 2
    )
    await stage.until(
        lambda: all(
            each.rewind == "DONE"
            for each in stage.home.board.decisions.values()
            if each.state in moved
        )
    )
    await stage.answered(stage.newest.id)
    await stage.until(lambda: "has forgotten it" in stage.home.notice.text)


PANE_STATES = (
    State("pane", pane, WIDE, readme=True),
    State("pane-narrow", pane),
    State("pane-small", pane, SMALL),
    State("pane-light", pane, WIDE, theme="textual-light"),
    State("pane-zh", pane, WIDE, language="zh"),
    State("pane-excised", pane_excised, NORMAL),
    State("pane-empty", pane_empty),
    State("unread", unread, WIDE),
    State("unread-narrow", unread),
    State("edit-waiting", edit_waiting),
    State("search", search, NORMAL, readme=True),
    State("search-small", search, SMALL),
    State("go-to", go_to),
    State("marked", marked, WIDE),
    State("corrected-several", corrected_several, WIDE, readme=True),
)
