"""How decisions, targets and projects look, as pure functions from data to `Content`.

This is the one place where text of people, models and files becomes something on the screen. It
is made safe first (`lines.plain`, `lines.one_line`) and goes into `Content`, never through markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from textual.content import Content

from isola_core.model import (
    Attribution,
    DecisionState,
    DecisionView,
    DeliveryState,
    Project,
    Stage,
    Target,
)
from isola_core.ports import FailureKind
from isola_tui.aim import Aim
from isola_tui.board import Activity, Choice, Item
from isola_tui.lines import MUTED, barred, muted, one_line, plain, row, wrapped
from isola_tui.messages import Texts

GLYPHS: Final = {
    Activity.IDLE: ("●", "$text-success"),
    Activity.WORKING: ("◐", "$text-accent"),
    Activity.NEEDS_YOU: ("◆", "$text-warning"),
    Activity.FAILED: ("✖", "$text-error"),
    Activity.UNKNOWN: ("?", "$text-warning"),
    Activity.ASLEEP: ("○", "$foreground 62%"),
}

LETTERS: Final = "abcdefghi"
"""A card's candidates; `n`, `o` and `p` are its other answers."""

BAR_CELLS: Final = 6
NAME_LIMIT: Final = 24
TEXT_LINES: Final = 8
REPLY_LINES: Final = 6
TEXT_CHARACTERS: Final = 4_000
"""Of a folded text; wrapping a megabyte for six lines would be felt."""

OPENED_CHARACTERS: Final = 60_000

NOTE_CHARACTERS: Final = 4_000
"""Of what a rewind left: it names every file that stays changed."""


@dataclass(frozen=True)
class Presentation:
    """Draws with one language's texts, the projects' names, the keys as they are bound, and the
    length of the isolation window in milliseconds."""

    texts: Texts
    projects: Mapping[str, Project]
    keys: Mapping[str, str]
    window_ms: int
    zone: tzinfo = UTC

    # -- names, times, windows

    def name(self, project: str | None, limit: int = NAME_LIMIT) -> str:
        """A project's name for one line; its id where it is not known."""
        if project is None:
            return "?"
        known = self.projects.get(project)
        return one_line(known.name if known else project, limit) or "?"

    def aimed(self, target: Target, limit: int = NAME_LIMIT) -> str:
        """A target's name, with its lane where it has one."""
        lane = one_line(target.lane, limit)
        name = self.name(target.project, limit)
        return f"{name}/{lane}" if lane else name

    def time(self, at: int, now: int) -> str:
        """A time for a person: the clock time, with the day where it is another one."""
        when = datetime.fromtimestamp(at / 1000, self.zone)
        today = datetime.fromtimestamp(now / 1000, self.zone)
        return f"{when:%H:%M}" if when.date() == today.date() else f"{when:%m-%d %H:%M}"

    def window(self, view: DecisionView, now: int, *, bar: bool) -> Content:
        """The isolation window: a bar and the time left, or that it is held."""
        if view.held:
            return Content.styled(f"‖ {self.texts('state.held')}", "$text-warning")
        if view.deadline is None:
            return Content.empty()
        left = max(0, view.deadline - now)
        seconds = -(-left // 1000)
        time = Content.styled(f"{seconds // 60}:{seconds % 60:02}", "$text-primary")
        if not bar:
            return time
        halves = min(BAR_CELLS * 2, round(left / max(1, self.window_ms) * BAR_CELLS * 2))
        full, half = divmod(halves, 2)
        rest = BAR_CELLS - full - half
        return Content.assemble(
            ("━" * full + "╸" * half, "$primary"), ("━" * rest, "$foreground 20%"), " ", time
        )

    # -- the target line

    def target_line(self, aim: Aim, *, empty: bool) -> Content:
        """What stands above the text while it is typed."""
        texts = self.texts
        if not any(not each.retired for each in self.projects.values()):
            return muted(texts("target.none", key=self.keys.get("new_project", "")))
        if aim.chosen is not None:
            return Content.assemble(
                ("→ ", "$text-accent"),
                (self.aimed(aim.chosen), "bold $text-accent"),
                "  ",
                (texts("target.chosen"), MUTED),
                (f" · {texts('target.automatic', key=self.keys.get('back', ''))}", MUTED),
            )
        attribution = aim.attribution
        if empty or attribution is None:
            return muted(texts("target.empty"))
        tail = muted(f"  {texts('target.reading')}") if aim.partial else Content.empty()
        if attribution.target is None and attribution.stage is Stage.EXPLICIT:
            names = [self.name(each.project) for each in attribution.candidates]
            return Content.assemble(
                ("→ ", "$text-success"),
                (f"{' + '.join(names)} ", "bold $text-success"),
                (f" {self.texts('target.each')}", MUTED),
            )
        if attribution.target is None:
            return self._unsure(attribution) + tail
        parts = [
            Content.styled("→ ", "$text-success"),
            Content.styled(f"{self.aimed(attribution.target)} ", "bold $text-success"),
            Content.styled(f"{attribution.confidence:.2f} ", "$foreground"),
            muted(f"({self.stage(attribution)})"),
        ]
        if (runner_up := attribution.runner_up) is not None:
            parts.append(muted(f" · {self.name(runner_up.project)} {runner_up.confidence:.2f}"))
        return Content.empty().join([*parts, tail])

    def _unsure(self, attribution: Attribution) -> Content:
        parts = [
            Content.styled("→ ? ", "bold $text-warning"),
            Content.styled(self.texts("target.unsure"), "$text-warning"),
        ]
        parts += [
            muted(f" · {self.name(each.project)} {each.confidence:.2f}")
            for each in attribution.candidates[:2]
        ]
        return Content.empty().join(parts)

    def stage(self, attribution: Attribution) -> str:
        """Who decided, in one word: the stage, or the judge of stage 3."""
        if attribution.stage is Stage.JUDGEMENT and attribution.judge:
            return one_line(attribution.judge, 16)
        return self.texts(f"stage.{attribution.stage}")

    # -- one decision in the feed

    def body(self, item: Item, width: int) -> list[Content]:
        """A decision in the feed below its headline, as lines of at most `width` cells."""
        view = item.view
        ended = view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN)
        style = f"strike {MUTED}" if ended else ""
        text = plain(view.message.text)
        lines = self._folded(text, width, item.opened or item.answering, TEXT_LINES, style)
        if item.before is not None:
            said = self.texts("item.corrected_from", project=self.name(item.before))
            lines += wrapped(muted(said), width)
        if view.state is DecisionState.WAITING_CONFIRMATION:
            lines += self.card(item, width)
        elif not ended:
            lines += self._delivery(item, width)
            lines += self._reply(item, width)
        if view.rewind is not None:
            lines += self._rewind(view, width)
        return lines

    def headline(self, item: Item, width: int, now: int) -> Content:
        """A decision's first line: when, where to, how it stands, how long it can be taken back."""
        view = item.view
        time = muted(f"{self.time(view.created, now)} ")
        waiting = view.state is DecisionState.WAITING_CONFIRMATION
        if waiting or view.project is None:
            left = Content.assemble(
                time, ("? ", "bold $text-warning"), (self.texts("state.waiting"), "$text-warning")
            )
            if not waiting:
                left = Content.assemble(time, ("? ", MUTED))
        else:
            target = Target(view.project, view.lane)
            ended = view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN)
            attribution = view.attribution
            left = Content.assemble(
                time,
                ("→ ", MUTED),
                (self.aimed(target), MUTED if ended else "bold $text-accent"),
                "  ",
                (f"{attribution.confidence:.2f} {self.stage(attribution)}", MUTED),
            )
        if view.message.masked:
            masked = muted(self.texts("state.masked"))
            left = Content.assemble(left, "  ", ("⊘ ", "$text-warning"), masked)
        return row(left, self._standing(item, now, bar=width >= 44), width)

    def _standing(self, item: Item, now: int, *, bar: bool) -> Content:
        view = item.view
        match view.state:
            case DecisionState.WAITING_CONFIRMATION:
                return Content.empty()
            case DecisionState.COMMITTED:
                return Content.styled(f"✓ {self.texts('state.committed')}", MUTED)
            case DecisionState.CORRECTED:
                said = self.texts("state.corrected", project=self.name(item.after))
                return Content.styled(f"↷ {said}", "$text-warning")
            case DecisionState.WITHDRAWN:
                return Content.styled(f"↶ {self.texts('state.withdrawn')}", MUTED)
            case _:
                window = self.window(view, now, bar=bar)
                delivery = self.delivery(view.delivery)
                return Content("  ").join([each for each in (delivery, window) if each])

    def delivery(self, state: DeliveryState | None) -> Content:
        """The delivery's state with its glyph; nothing once it was answered."""
        if state is None or state is DeliveryState.ANSWERED:
            return Content.empty()
        glyph, style = {
            DeliveryState.FAILED: ("✖", "$text-error"),
            DeliveryState.UNKNOWN: ("?", "bold $text-warning"),
            DeliveryState.CANCELLED: ("■", "$text-warning"),
            DeliveryState.PENDING: ("◌", MUTED),
        }.get(state, ("◐", "$text-accent"))
        return Content.styled(f"{glyph} {self.texts(f'delivery.{state}')}", style)

    def _delivery(self, item: Item, width: int) -> list[Content]:
        view = item.view
        keys = {key: self.keys.get(key, "") for key in ("resend", "withdraw", "settle")}
        error = one_line(view.delivery_error, 300)
        match view.delivery:
            case DeliveryState.FAILED:
                said, then = self.texts(_failed(view), error=error), "item.failed_next"
                style = "$text-error"
            case DeliveryState.UNKNOWN:
                said, then = self.texts("item.unknown", error=error), "item.unknown_next"
                style = "$text-warning"
            case DeliveryState.CANCELLED:
                said, then = self.texts("item.cancelled", error=error), "item.failed_next"
                style = "$text-warning"
            case _:
                return []
        return [
            *wrapped(Content.styled(said, style), width),
            *wrapped(muted(self.texts(then, **keys)), width),
        ]

    def _reply(self, item: Item, width: int) -> list[Content]:
        lines: list[Content] = []
        if item.doing and not item.view.reply:
            lines += wrapped(
                Content.styled(f"◐ {one_line(item.doing, 160)}", "$text-accent"), width
            )
        if item.view.reply:
            return lines + self._folded(
                plain(item.view.reply[: OPENED_CHARACTERS + 1]),
                width,
                item.opened,
                REPLY_LINES,
                "",
                prefix="│ ",
            )
        if not item.partial:
            return lines
        tail = plain(item.partial[-TEXT_CHARACTERS:])
        drawn = barred(wrapped(Content(tail), width - 2), "│ ")
        if len(drawn) <= REPLY_LINES:
            return lines + drawn
        hidden = len(drawn) - REPLY_LINES
        return [*lines, muted(self.texts.count("item.earlier", hidden)), *drawn[-REPLY_LINES:]]

    def _folded(
        self, text: str, width: int, opened: bool, keep: int, style: str, prefix: str = ""
    ) -> list[Content]:
        """A text of at most `keep` lines, or the whole of it where it is opened."""
        limit = OPENED_CHARACTERS if opened else TEXT_CHARACTERS
        cut = len(text) > limit
        body = Content.styled(text[:limit].strip("\n"), style)
        drawn = barred(wrapped(body, width - len(prefix)), prefix)
        fold = self.keys.get("fold", "")
        if opened:
            notes = [self.texts("item.cut")] if cut else []
            if len(drawn) > keep:
                notes.append(self.texts("item.fold", key=fold))
            return drawn + [muted(each) for each in notes]
        if len(drawn) <= keep + 1 and not cut:
            return drawn
        hidden = len(drawn) - keep + (text.count("\n", limit) if cut else 0)
        more = self.texts.count("item.more", hidden, key=fold)
        return [*drawn[:keep], *barred([muted(more)], prefix)]

    def _rewind(self, view: DecisionView, width: int) -> list[Content]:
        said = self.texts(f"item.rewind.{view.rewind}", project=self.name(view.project))
        note = one_line(view.rewind_note, NOTE_CHARACTERS)
        return wrapped(muted(f"↶ {said}{f' · {note}' if note else ''}"), width)

    # -- cards

    def choices(self, view: DecisionView) -> tuple[Choice, ...]:
        """The answers of a card: candidates first, then the other projects, then the ways out."""
        ranked = {each.project: each for each in view.attribution.candidates}
        open_projects = [each for each in self.projects.values() if not each.retired]
        known = {each.id for each in open_projects}
        order = [each for each in ranked if each in known]
        order += [each.id for each in open_projects if each.id not in ranked and each.listed]
        found = [
            Choice(
                letter,
                self.name(project),
                project,
                ranked[project].confidence if project in ranked else None,
                ranked[project].reason if project in ranked else "",
            )
            for letter, project in zip(LETTERS, order, strict=False)
        ]
        if len(order) > len(found):
            found.append(Choice("o", self.texts("card.other")))
        found.append(Choice("p", self.texts("card.new")))
        found.append(Choice("n", self.texts("card.none")))
        return tuple(found)

    def card(self, item: Item, width: int) -> list[Content]:
        """Why it asks, the answers with their letters, and how to answer."""
        lines: list[Content] = []
        if reason := one_line(item.view.attribution.reason, 200):
            lines += wrapped(muted(reason), width)
        if not any(each.project for each in item.choices):
            lines += wrapped(Content.styled(self.texts("card.empty"), "$text-warning"), width)
        lines += self.answers(item.choices, width, active=item.answering)
        return [*lines, self.how_to_answer("card", width, active=item.answering)]

    def answers(self, choices: Sequence[Choice], width: int, *, active: bool) -> list[Content]:
        """One line for each answer."""
        names = [Content(each.label).cell_length for each in choices if each.project]
        column = min(max(names, default=0), max(8, width // 3))
        lines = []
        for each in choices:
            letter = Content.styled(
                f" {each.letter} ", "bold $text on $warning 40%" if active else "bold $text-warning"
            )
            label = Content(one_line(each.label, 200))
            if each.project:
                label = label.truncate(column, ellipsis=True, pad=True)
            share = f"  {each.confidence:.2f}" if each.confidence is not None else ""
            reason = one_line(each.reason, 160)
            line = Content.assemble(letter, " ", label, share, "  ", (reason, MUTED))
            lines.append(line.truncate(width, ellipsis=True))
        return lines

    def how_to_answer(self, kind: str, width: int, *, active: bool) -> Content:
        """The line below a card's answers. `kind` is `card` or `question`."""
        answer, back = self.keys.get("answer", ""), self.keys.get("back", "")
        key = f"{kind}.now" if active else f"{kind}.how"
        return muted(self.texts(key, key=answer, back=back)).truncate(width, ellipsis=True)

    # -- the side panels

    def decision_lines(self, view: DecisionView, width: int, now: int) -> list[Content]:
        """A decision in the side panel: where, and how it stands."""
        if view.state is DecisionState.WAITING_CONFIRMATION:
            names = " | ".join(
                self.name(each.project, 12) for each in view.attribution.candidates[:3]
            )
            left = Content.assemble(("? ", "bold $text-warning"), (names or "…", "$text-warning"))
            return [left.truncate(width, ellipsis=True), self._excerpt(view, width)]
        glyph, style = {
            DecisionState.COMMITTED: ("✓", "$text-success"),
            DecisionState.CORRECTED: ("↷", "$text-warning"),
            DecisionState.WITHDRAWN: ("↶", MUTED),
        }.get(view.state, ("▸", "$text-primary"))
        ended = view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN)
        name = Content.styled(self.name(view.project), MUTED if ended else "bold")
        head = Content.assemble((f"{glyph} ", style), name)
        if view.state is not DecisionState.TENTATIVE:
            return [head.truncate(width, ellipsis=True), self._excerpt(view, width)]
        delivery = self.delivery(view.delivery)
        standing = delivery or self.window(view, now, bar=True)
        return [row(head, standing, width), self._excerpt(view, width)]

    def _excerpt(self, view: DecisionView, width: int) -> Content:
        return muted("  " + one_line(view.message.text, 200)).truncate(width, ellipsis=True)

    def project_line(self, project: Project, activity: Activity, width: int) -> Content:
        """A project in the side panel."""
        glyph, style = GLYPHS[activity]
        name = Content.assemble((f"{glyph} ", style), self.name(project.id, 80))
        word = muted(self.texts(f"projects.{activity}"))
        quiet = activity in (Activity.IDLE, Activity.ASLEEP)
        if quiet and name.cell_length + word.cell_length + 1 > width:
            return name.truncate(width, ellipsis=True)
        return row(name, word, width)

    def glyph_line(self, activities: Mapping[str, Activity], width: int) -> Content:
        """All projects as one line of glyphs and names; what needs the person comes first."""
        urgency = [Activity.NEEDS_YOU, Activity.FAILED, Activity.UNKNOWN, Activity.WORKING]
        order = sorted(
            activities,
            key=lambda each: (activities[each] not in urgency, list(activities).index(each)),
        )
        parts: list[Content] = []
        used = 0
        for place, project in enumerate(order):
            glyph, style = GLYPHS[activities[project]]
            part = Content.assemble((f"{glyph} ", style), self.name(project, 16))
            rest = len(order) - place
            room = width - used - (len(f"  +{rest}") if rest > 1 else 0)
            if part.cell_length > room:
                parts.append(muted(f"+{rest}"))
                break
            parts.append(part)
            used += part.cell_length + 2
        return Content("  ").join(parts).truncate(width, ellipsis=True)


def _failed(view: DecisionView) -> str:
    """The text of a failure: what only the person can mend has one of its own."""
    match view.failure:
        case FailureKind.RATE_LIMITED:
            return "item.rate_limited"
        case FailureKind.AUTH_EXPIRED:
            return "item.auth_expired"
        case _:
            return "item.failed"
