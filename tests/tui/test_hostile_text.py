"""Every place where text of people, models and files enters the screen, with text that bites."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from isola_core.model import Attribution, Candidate, DeliveryState, Project, Stage, Target
from isola_core.ports import TurnEvent, TurnEventKind
from isola_core.projects import NewProject
from isola_core.service.delegated import Incoming
from isola_core.store import decisions
from isola_tui.aim import Aim
from isola_tui.board import Activity
from isola_tui.drawing.panels import Standing, glyph_line, project_line
from isola_tui.drawing.target import target_line
from isola_tui.lines import one_line, plain
from isola_tui.messages import LANGUAGES, load_texts
from isola_tui.presentation import Presentation
from isola_tui.screens.choose import ChooseProject
from isola_tui.widgets.notice import Notice
from tests.tui.stage import CONVERSATION, Running, on_stage, opened
from tests.tui.states import ask, end_delivery, stop_dispatching

HOSTILE = (
    "[/",
    "[/some/path]",
    "yield x[/dim]",
    "[data: /m?x=bb-609b-]",
    "plain [x] [bold]b[/bold] $text {key} %s",
    "\x1b]52;c;ZXZpbA==\x07 \x1b[2J \x1bc \x9b31m \x1b]8;;http://x\x1b\\l",
    "\u202eevil\u2066 \u200f",
    "名" * 100,
    "👩‍👩‍👧‍👦 ✌️ 🇨🇭 e\u0301",
)
FORBIDDEN = ("\x1b", "\x9b", "\x07", "\u202e", "\u2066", "\u200f")

SIZES = ((60, 15), (120, 40))


async def fill(stage: Running, text: str) -> None:
    """Bring the text into every place: message, names, reasons, reply, errors, questions."""
    runtime = stage.runtime
    told = Attribution(
        Stage.JUDGEMENT,
        0.5,
        text,
        candidates=(Candidate("hostile", 0.5, text), Candidate(text, 0.4, text)),
        referenced=(text,),
        judge=text,
    )
    incoming = Incoming(CONVERSATION, f"make it so {text}")
    card = (await runtime.service.accept(incoming)).decisions[0]
    await runtime.store.write(lambda tx: decisions.explain_decision(tx, card.id, told))
    shown = Attribution(Stage.JUDGEMENT, 0.9, text, Target("hostile", text), True, judge=text)
    stop_dispatching(stage)
    sent = await runtime.service.accept(Incoming(CONVERSATION, f"hostile {text}", shown=shown))
    view = sent.decisions[0]
    await stage.until(lambda: view.id in stage.home.board.decisions)
    await end_delivery(stage, view, DeliveryState.RUNNING, "")
    await end_delivery(stage, view, DeliveryState.WRITTEN, "")
    live = runtime.dispatcher.live
    live.hear(view.id, TurnEvent(TurnEventKind.TOOL, text))
    live.hear(view.id, TurnEvent(TurnEventKind.TEXT, f"reply {text}"))
    session = stage.view(view.id).session
    assert session is not None
    ask(stage, session, "hostile")
    (question,) = live.questions[session]
    live.questions[session] = (
        type(question)(question.id, text, text, (("a", text), ("b", "no")), tool=text),
    )
    live.changed()
    await stage.until(lambda: stage.home.board.questions)
    stage.home.draw()
    check(stage)
    await end_delivery(stage, view, DeliveryState.FAILED, text)
    check(stage)


def check(stage: Running) -> None:
    """Nothing that could act on the terminal stands on the screen, and no row is torn."""
    drawn = stage.screen_text
    for each in FORBIDDEN:
        assert each not in drawn, repr(each)
    for row in drawn.split("\n"):
        assert Content(row).cell_length == stage.app.size.width, row


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_is_only_text(tmp_path: Path, text: str, size: tuple[int, int]) -> None:
    name = f"hostile {text}"[:110]
    project = NewProject(name, text, id="hostile")
    async with (
        opened(tmp_path / "home", projects=(project,)) as runtime,
        on_stage(runtime, size=size) as stage,
    ):
        stage.home.entry.load_message(text)
        await stage.pilot.pause()
        check(stage)
        await stage.pilot.press("tab")
        check(stage)
        stage.home.entry.load_message("")
        await fill(stage, text)
        for key in ("f3", "f2", "escape", "ctrl+o", "escape", "f3", "f2", "escape", "ctrl+p"):
            await stage.pilot.press(key)
            check(stage)
        await stage.pilot.press("escape")
        for key in ("alt+1", "escape", "ctrl+backslash", "escape", "ctrl+underscore"):
            await stage.pilot.press(key)
            await stage.pilot.pause()
            check(stage)
        await stage.pilot.press(*"make", "enter")
        await stage.pilot.pause()
        check(stage)
        await stage.pilot.press("escape")
        stage.home.query_one(Notice).say(text)
        await stage.pilot.pause()
        check(stage)


async def test_hostile_names_are_chosen_from_the_list(tmp_path: Path) -> None:
    names = [NewProject(text[:100], text, id=f"p{n}") for n, text in enumerate(HOSTILE)]
    async with (
        opened(tmp_path / "home", projects=names[:6] + names[7:]) as runtime,
        on_stage(runtime) as stage,
    ):
        view = await stage.send("@p0 do it")
        await stage.answered(view.id)
        await stage.pilot.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, ChooseProject))
        check(stage)
        await stage.type("[")
        check(stage)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.newest.previous == view.id)
        check(stage)


@given(st.text(alphabet=st.characters(), max_size=200))
def test_plain_text_holds_nothing_that_acts(text: str) -> None:
    shown = plain(text)
    assert not any(each in shown for each in FORBIDDEN)
    assert not any(ord(each) < 0x20 and each != "\n" for each in shown)
    shown.encode()


@given(st.text(max_size=200), st.integers(1, 60))
def test_one_line_is_one_printable_line(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert all(each.isprintable() for each in shown)


@given(st.text(max_size=60), st.integers(8, 130), st.sampled_from(LANGUAGES))
def test_the_target_line_and_panels_take_any_name(text: str, width: int, language: str) -> None:
    project = Project("p", text or "x", "proj.o.p", text)
    draw = Presentation(load_texts(language), {"p": project}, {}, 300_000)
    told = Attribution(
        Stage.JUDGEMENT, 0.5, text, Target("p", text), candidates=(Candidate(text, 0.4, text),)
    )
    for aim in (Aim(text, told), Aim(chosen=Target("p", text)), Aim(text, told, partial=True)):
        assert "\n" not in target_line(draw, aim, empty=False).plain
    line = project_line(draw, project, Standing(Activity.WORKING, 3, 2, 1), width)
    assert line.cell_length <= width
    assert glyph_line(draw, {"p": Activity.IDLE}, width)[0].cell_length <= width
