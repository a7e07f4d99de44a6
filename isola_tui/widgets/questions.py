"""What agents ask while they work: permissions and choices, each answered by a letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from isola_tui.board import Choice, OpenQuestion
from isola_tui.drawing.cards import LETTERS, answers, how_to_answer
from isola_tui.lines import MUTED, one_line, plain
from isola_tui.presentation import Presentation
from isola_tui.widgets.feed import DEAF_MS

DETAIL_LINES = 4


class QuestionCard(Widget):
    """One open question. It takes the keyboard only when the person goes to it."""

    can_focus = True

    @dataclass
    class Answered(Message):
        """A choice was made."""

        asked: OpenQuestion
        choice: str

    @dataclass
    class Left(Message):
        """It gave the keyboard back without an answer."""

    def __init__(
        self, asked: OpenQuestion, presentation: Presentation, clock: Callable[[], int]
    ) -> None:
        super().__init__()
        self.asked = asked
        self.presentation = presentation
        self._clock = clock
        self._since = clock()

    @property
    def deaf(self) -> bool:
        """Whether it is too new to be answered."""
        return self._clock() - self._since < DEAF_MS

    def on_focus(self) -> None:
        """Show that letters answer now."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that they do not any more."""
        self.refresh()

    def _lines(self, width: int) -> list[Content]:
        question, draw = self.asked.question, self.presentation
        title = draw.texts("question.title", project=draw.name(self.asked.project))
        tool = f" · {one_line(question.tool, 40)}" if question.tool else ""
        lines = [
            Content.assemble(("◆ ", "bold $text-warning"), (title, "bold"), (tool, MUTED)).truncate(
                width, ellipsis=True
            )
        ]
        lines += Content(plain(question.title)[:600]).wrap(width)
        detail = Content.styled(plain(question.detail)[:4_000].strip("\n"), MUTED)
        lines += detail.wrap(width)[:DETAIL_LINES] if detail else []
        choices = [
            Choice(letter, label)
            for letter, (_, label) in zip(LETTERS, question.choices, strict=False)
        ]
        lines += answers(draw, choices, width, active=self.has_focus)
        return [*lines, how_to_answer(draw, "question", width, active=self.has_focus)]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as it needs."""
        return len(self._lines(width)) if width else 0

    def render(self) -> Content:
        """Who asks, what, and the answers."""
        return Content("\n").join(self._lines(self.content_size.width))

    def on_key(self, event: events.Key) -> None:
        """Answer by a letter, leave by escape."""
        if event.key == "escape":
            event.stop()
            self.post_message(self.Left())
            return
        for letter, (answer, _) in zip(LETTERS, self.asked.question.choices, strict=False):
            if event.character == letter:
                event.stop()
                if not self.deaf:
                    self.post_message(self.Answered(self.asked, answer))


class Questions(VerticalScroll, can_focus=False):
    """All open questions; not there without any."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(id="questions")
        self._clock = clock
        self.display = False

    def cards(self) -> list[QuestionCard]:
        """The cards, oldest first."""
        return list(self.query(QuestionCard))

    def show(self, questions: Sequence[OpenQuestion], presentation: Presentation) -> None:
        """Add new questions and take answered ones away."""
        self.display = bool(questions)
        known = {(card.asked.session, card.asked.question.id): card for card in self.cards()}
        wanted = {(each.session, each.question.id) for each in questions}
        for key, card in known.items():
            if key not in wanted:
                card.remove()
        new = [
            QuestionCard(each, presentation, self._clock)
            for each in questions
            if (each.session, each.question.id) not in known
        ]
        if new:
            self.mount_all(new)
