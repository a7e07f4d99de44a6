"""One decision as the feed and a pane show it: its headline, its text, its reply, its rewind."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from isola_core.model import DecisionState, DecisionView, DeliveryState, Target
from isola_core.ports import FailureKind
from isola_tui.board import Item
from isola_tui.drawing.cards import card
from isola_tui.lines import MUTED, barred, muted, one_line, plain, row, wrapped
from isola_tui.presentation import Presentation

TEXT_LINES: Final = 8
REPLY_LINES: Final = 6
EXCISED_LINES: Final = 3
TEXT_CHARACTERS: Final = 4_000
"""Of a folded text; wrapping a megabyte for six lines would be felt."""

OPENED_CHARACTERS: Final = 60_000

NOTE_CHARACTERS: Final = 4_000
"""Of what a rewind left: it names every file that stays changed."""


def body(draw: Presentation, item: Item, width: int) -> list[Content]:
    """A decision in the feed below its headline, as lines of at most `width` cells."""
    view = item.view
    ended = view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN)
    style = f"strike {MUTED}" if ended else ""
    text = plain(view.message.text)
    lines = _folded(draw, text, width, item.opened or item.answering, TEXT_LINES, style)
    if item.before is not None:
        said = draw.texts("item.corrected_from", project=draw.name(item.before))
        lines += wrapped(muted(said), width)
    if view.state is DecisionState.WAITING_CONFIRMATION:
        lines += card(draw, item, width)
    elif not ended:
        lines += _delivery(draw, item, width)
        lines += _doing(item, width) if item.bare else _reply(draw, item, width)
    elif item.bare and view.reply:
        reply = plain(view.reply[: TEXT_CHARACTERS + 1])
        lines += _folded(draw, reply, width, item.opened, EXCISED_LINES, style, prefix="│ ")
    if view.rewind is not None:
        lines += _rewind(draw, view, width)
    return lines


def headline(draw: Presentation, item: Item, width: int, now: int) -> Content:
    """A decision's first line: when, where to, how it stands, how long it can be taken back."""
    view = item.view
    time = muted(f"{draw.time(view.created, now)} ")
    if item.marked:
        time = Content.assemble(("■ ", "bold $text-accent"), time)
    waiting = view.state is DecisionState.WAITING_CONFIRMATION
    if waiting or view.project is None:
        left = Content.assemble(
            time, ("? ", "bold $text-warning"), (draw.texts("state.waiting"), "$text-warning")
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
            (draw.aimed(target), MUTED if ended else "bold $text-accent"),
            "  ",
            (draw.decided(attribution), MUTED),
        )
    if view.message.masked:
        masked = muted(draw.texts("state.masked"))
        left = Content.assemble(left, "  ", ("⊘ ", "$text-warning"), masked)
    return row(left, _standing(draw, item, now, bar=width >= 44), width)


def _standing(draw: Presentation, item: Item, now: int, *, bar: bool) -> Content:
    view = item.view
    match view.state:
        case DecisionState.WAITING_CONFIRMATION:
            return Content.empty()
        case DecisionState.COMMITTED:
            return Content.styled(f"✓ {draw.texts('state.committed')}", MUTED)
        case DecisionState.CORRECTED:
            said = draw.texts("state.corrected", project=draw.name(item.after))
            return Content.styled(f"↷ {said}", "$text-warning")
        case DecisionState.WITHDRAWN:
            return Content.styled(f"↶ {draw.texts('state.withdrawn')}", MUTED)
        case _:
            window = draw.window(view, now, bar=bar)
            delivery = draw.delivery(view.delivery)
            return Content("  ").join([each for each in (delivery, window) if each])


def _delivery(draw: Presentation, item: Item, width: int) -> list[Content]:
    view = item.view
    keys = {key: draw.keys.get(key, "") for key in ("resend", "withdraw", "settle")}
    error = one_line(view.delivery_error, 300)
    match view.delivery:
        case DeliveryState.FAILED:
            said, then = draw.texts(_failed(view), error=error), "item.failed_next"
            style = "$text-error"
        case DeliveryState.UNKNOWN:
            said, then = draw.texts("item.unknown", error=error), "item.unknown_next"
            style = "$text-warning"
        case DeliveryState.CANCELLED:
            said, then = draw.texts("item.cancelled", error=error), "item.failed_next"
            style = "$text-warning"
        case _:
            return []
    return [
        *wrapped(Content.styled(said, style), width),
        *wrapped(muted(draw.texts(then, **keys)), width),
    ]


def _reply(draw: Presentation, item: Item, width: int) -> list[Content]:
    lines = _doing(item, width)
    if item.view.reply:
        return lines + _folded(
            draw,
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
    return [*lines, muted(draw.texts.count("item.earlier", hidden)), *drawn[-REPLY_LINES:]]


def _doing(item: Item, width: int) -> list[Content]:
    """What the agent does while its turn runs."""
    if not item.doing or item.view.reply:
        return []
    return wrapped(Content.styled(f"◐ {one_line(item.doing, 160)}", "$text-accent"), width)


def _folded(
    draw: Presentation, text: str, width: int, opened: bool, keep: int, style: str, prefix: str = ""
) -> list[Content]:
    """A text of at most `keep` lines, or the whole of it where it is opened."""
    limit = OPENED_CHARACTERS if opened else TEXT_CHARACTERS
    cut = len(text) > limit
    body = Content.styled(text[:limit].strip("\n"), style)
    drawn = barred(wrapped(body, width - len(prefix)), prefix)
    fold = draw.keys.get("fold", "")
    if opened:
        notes = [draw.texts("item.cut")] if cut else []
        if len(drawn) > keep:
            notes.append(draw.texts("item.fold", key=fold))
        return drawn + [muted(each) for each in notes]
    if len(drawn) <= keep + 1 and not cut:
        return drawn
    hidden = len(drawn) - keep + (text.count("\n", limit) if cut else 0)
    more = draw.texts.count("item.more", hidden, key=fold)
    return [*drawn[:keep], *barred([muted(more)], prefix)]


def _rewind(draw: Presentation, view: DecisionView, width: int) -> list[Content]:
    said = draw.texts(f"item.rewind.{view.rewind}", project=draw.name(view.project))
    note = one_line(view.rewind_note, NOTE_CHARACTERS)
    return wrapped(muted(f"↶ {said}{f' · {note}' if note else ''}"), width)


def _failed(view: DecisionView) -> str:
    """The text of a failure: what only the person can mend has one of its own."""
    match view.failure:
        case FailureKind.RATE_LIMITED:
            return "item.rate_limited"
        case FailureKind.AUTH_EXPIRED:
            return "item.auth_expired"
        case _:
            return "item.failed"
