"""Composing: where the text in the entry will go, its draft, and sending it.

Typing waits for nothing: the target comes from memory, and drafts and sending run beside it. A
text leaves the entry when it is sent and comes back when it was refused; until it is accepted it
stays part of the draft.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from textual.screen import Screen
from textual.timer import Timer

from isola_core.attribution.addressing import addressed
from isola_core.errors import IsolaError, SecretRefused
from isola_core.model import Attribution, Stage, Target
from isola_core.service.delegated import Incoming
from isola_core.text import is_blank, name_key
from isola_tui.ahead import ahead_of
from isola_tui.aim import Aim, steady
from isola_tui.board import Board
from isola_tui.completion import Completion, Offer
from isola_tui.drawing.target import target_line
from isola_tui.presentation import Presentation
from isola_tui.widgets.entry import Entry
from isola_tui.widgets.notice import Notice, Tone

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime

LOG = logging.getLogger("isola.screen")

PREVIEWED: Final = 8_000
"""Characters of a text that are attributed at every key; the rest is read when typing rests."""

REST_S: Final = 0.3
"""A pause in typing after which the whole of a long text is read and the draft is saved."""

UNSAVED_S: Final = 1.0
"""Typing without a pause is saved after this long all the same."""


class Composer:
    """The entry's logic. `screen` lends its workers and timers."""

    def __init__(
        self, screen: Screen[None], runtime: Runtime, conversation: str, board: Board
    ) -> None:
        self.aim = Aim()
        self.presentation: Presentation
        self._screen = screen
        self._runtime = runtime
        self._conversation = conversation
        self._board = board
        self._unsent: list[str] = []
        self._refused: str | None = None
        self._rest: Timer | None = None
        self._unsaved_since = 0.0
        self._saved: tuple[str, str | None] = ("", None)
        self._shown: Target | None = None
        """The target that the last frame showed."""
        self._saving = asyncio.Lock()
        self.visible: str | None = None
        """The project whose pane is open."""
        self._names: tuple[object, dict[str, str], Completion] | None = None

    @property
    def _entry(self) -> Entry:
        return self._screen.query_one(Entry)

    def _say(self, key: str, tone: Tone, /, **values: object) -> None:
        said = self.presentation.texts(f"notice.{key}", **values)
        self._screen.query_one(Notice).say(said, tone)

    # -- the draft

    async def restore(self) -> None:
        """Bring the draft back into the entry, with its hand-picked target."""
        text, target = await self._runtime.service.draft(self._conversation)
        if text:
            self._entry.load_message(text)
            self._saved = (text, target)
            if target is not None and target in self._board.projects:
                self.aim = replace(self.aim, chosen=Target(target))
            self._say("welcome_back", Tone.HINT)
        self.preview(self._entry.message)

    async def save(self) -> None:
        """Keep what stands in the entry, and what was sent but is not accepted yet."""
        async with self._saving:
            text = "\n".join([*self._unsent, self._entry.message])
            text = "" if is_blank(text) else text
            target = self.aim.chosen.project if self.aim.chosen and text else None
            if (text, target) == self._saved:
                return
            try:
                await self._runtime.service.save_draft(self._conversation, text, target)
            except IsolaError as error:
                self._say("draft_failed", Tone.REFUSED, error=error.message)
            else:
                self._saved = (text, target)

    # -- the target

    def typed(self, text: str) -> None:
        """The text has changed: show where it goes now; save the draft when typing rests."""
        self.preview(text)
        now = asyncio.get_running_loop().time()
        if self._rest is None:
            self._unsaved_since = now
        elif now - self._unsaved_since < UNSAVED_S:
            self._rest.stop()
        else:
            return  # it is due soon, however fast the keys come
        self._rest = self._screen.set_timer(REST_S, self._rested)

    def preview(self, text: str) -> None:
        """Attribute a text, from memory alone, and show it."""
        beginning = text[:PREVIEWED]
        attribution = None if is_blank(beginning) else self._attributed(beginning)
        attribution = steady(self.aim.attribution, attribution)
        self._aimed(text, attribution, partial=len(text) > PREVIEWED)
        self.draw()

    def _aimed(self, text: str, attribution: Attribution | None, *, partial: bool = False) -> None:
        """Aim at what attribution says; what the person chose stays.

        A pick was for the text that stood there: it goes when the text is gone, and gives way to
        an `@` that is typed after it.
        """
        targets = self._addressed(text, attribution)
        cleared = is_blank(text) and not is_blank(self.aim.text)
        addressed_since = bool(targets) and targets != self.aim.targets
        self.aim = replace(
            self.aim,
            text=text,
            attribution=attribution,
            chosen=None if cleared or addressed_since else self.aim.chosen,
            targets=targets,
            partial=partial,
        )

    def _addressed(self, text: str, attribution: Attribution | None) -> tuple[Target, ...]:
        """The targets that the text names with `@`, lanes and all."""
        if attribution is None or attribution.stage is not Stage.EXPLICIT:
            return ()
        keys, _ = self._known_names()
        return addressed(text, keys).targets

    def again(self) -> None:
        """Projects have changed: attribute the same text again."""
        self.preview(self.aim.text)

    def step(self, step: int) -> None:
        """Choose the next (1) or previous (-1) target by hand."""
        listed = [each.id for each in self._board.listed()]
        if (target := self.aim.stepped(step, listed)) is not None:
            self.aim = replace(self.aim, chosen=target)
            self.draw()

    def toggle_lock(self) -> None:
        """Lock everything to the target that stands there, or release the lock."""
        if self.aim.locked is not None and self.aim.uses_lock:
            self.aim = replace(self.aim, locked=None)
        elif (target := self.aim.target) is not None:
            self.aim = replace(self.aim, locked=target, chosen=None)
        else:
            self._say("nothing_to_lock", Tone.HINT, key=self.presentation.keys["target_next"])
            return
        self.draw()

    def toggle_raw(self) -> None:
        """The next message goes to its session as it is, or does not after all."""
        self.aim = replace(self.aim, raw=not self.aim.raw)
        self.draw()

    def release(self) -> bool:
        """One step back: raw, the target chosen by hand, the lock; False where none of it is."""
        aim = self.aim
        if aim.raw:
            self.aim = replace(aim, raw=False)
        elif aim.chosen is not None:
            self.aim = replace(aim, chosen=None)
        elif aim.locked is not None:
            self.aim = replace(aim, locked=None)
        else:
            return False
        self.draw()
        return True

    def draw(self) -> None:
        """Show the target above the text."""
        self.aim = aim = replace(self.aim, ahead=ahead_of(self._board, self.aim.target))
        entry = self._entry
        entry.border_title = target_line(self.presentation, aim, empty=is_blank(aim.text))
        entry.set_class(aim.uses_lock, "-locked")
        entry.set_class(aim.raw, "-raw")
        self._screen.call_after_refresh(self._painted, aim.target)

    def board_changed(self) -> None:
        """What the target's session has before it may be another number now."""
        if ahead_of(self._board, self.aim.target) != self.aim.ahead:
            self.draw()

    def offers(self, before: str) -> tuple[Offer, ...]:
        """What the text before the cursor may go on with."""
        return self._known_names()[1].offers(before)

    def _known_names(self) -> tuple[dict[str, str], Completion]:
        """The keys of all names, and what completes them; made anew when the projects change."""
        projects = self._board.projects
        if self._names is None or self._names[0] is not projects:
            owners: dict[str, set[str]] = {}
            for each in self._board.listed():
                for name in (each.id, each.name, *each.aliases):
                    owners.setdefault(name_key(name), set()).add(each.id)
            keys = {key: next(iter(ids)) for key, ids in owners.items() if len(ids) == 1}
            self._names = (projects, keys, Completion(self._board.listed(), self._lanes()))
        return self._names[1:]

    def _lanes(self) -> dict[str, list[str]]:
        found: dict[str, dict[str, None]] = {}
        for each in self._runtime.config.projects:
            found.setdefault(each.id, {}).update(dict.fromkeys(each.lanes))
        for view in self._board.decisions.values():
            if view.project is not None and view.lane:
                found.setdefault(view.project, {})[view.lane] = None
        return {project: list(lanes) for project, lanes in found.items()}

    def _painted(self, target: Target | None) -> None:
        self._shown = target

    def _attributed(self, text: str) -> Attribution:
        asking = self._board.asking()
        return self._runtime.service.preview(
            text, self._conversation, asking=asking, visible=self.visible
        )

    async def _rested(self) -> None:
        self._rest = None
        if not self._screen.query(Entry):
            return  # the program ends; it keeps the draft itself
        if self.aim.partial:
            self._screen.run_worker(self._read_whole(), group="read", exit_on_error=False)
        await self.save()

    async def _read_whole(self) -> None:
        """Attribute the whole of a long text."""
        text = self.aim.text
        attribution = await asyncio.to_thread(self._attributed, text)
        if text == self.aim.text:
            self._aimed(text, attribution)
            self.draw()

    # -- sending

    async def submit(self, text: str, *, urgent: bool = False) -> bool:
        """Send a text to the target that is shown. False: that was another one, so it came back.

        A very long text is read whole first. A target that no frame has shown yet (keys that came
        in one burst) is not passed on as seen: the pipeline decides, or asks.
        """
        if self.aim.text != text:
            known = self.aim.locked is not None or self.aim.raw
            attribution = self._attributed(text[:PREVIEWED]) if known else None
            self._aimed(text, attribution, partial=known and len(text) > PREVIEWED)
        aim = self.aim
        if aim.raw and not aim.by_hand:
            self._entry.put_back(text)
            self._say("raw_needs_target", Tone.HINT, key=self.presentation.keys["target_next"])
            return False
        self._begin_anew()
        if aim.partial and aim.chosen is None:
            attribution = await asyncio.to_thread(self._attributed, text)
            whole = replace(
                aim,
                attribution=attribution,
                targets=self._addressed(text, attribution),
                partial=False,
            )
            if (whole.target, whole.targets) != (aim.target, aim.targets):
                self._entry.put_back(text)
                self._say("target_changed", Tone.HINT)
                return False
            aim = whole
        self._send(text, aim, urgent=urgent)
        return True

    def _begin_anew(self) -> None:
        """The text has left: the lock stays, everything else was for that message alone."""
        self.aim = Aim(locked=self.aim.locked)

    @property
    def refused(self) -> bool:
        """Whether the text in the entry was refused and could be sent unstored."""
        return self._refused is not None and self._entry.message == self._refused

    def send_unstored(self) -> None:
        """Send what was refused, unstored; only while it still stands in the entry."""
        text, aim = self._refused, self.aim
        if text is None or self._entry.message != text:
            self._say("nothing_refused", Tone.HINT)
            return
        self._begin_anew()
        self._entry.load_message("")
        self._send(text, aim, unstored=True)

    def _send(self, text: str, aim: Aim, *, unstored: bool = False, urgent: bool = False) -> None:
        seen = aim.target is not None and aim.target == self._shown
        targets, body = aim.by_hand, text
        if aim.targets and aim.chosen is None:
            if aim.raw:
                body = addressed(text, self._known_names()[0]).text
            else:
                targets = ()  # the core reads the marks itself, and keeps what was typed
        incoming = Incoming(
            conversation=self._conversation,
            text=body,
            targets=targets,
            shown=aim.attribution if seen and not aim.by_hand else None,
            event_id=self._runtime.core.ids.new("e"),
            platform="terminal",
            asking=self._board.asking(),
            visible=self.visible,
            unstored=unstored,
            raw=aim.raw,
            urgent=urgent,
        )
        self._unsent.append(text)
        self._refused = None
        self._screen.query_one(Notice).clear()
        accept = self._accept(incoming, text, aim)
        self._screen.run_worker(accept, group="accept", exit_on_error=False)

    async def _accept(self, incoming: Incoming, text: str, aim: Aim) -> None:
        try:
            await self._runtime.service.accept(incoming)
        except SecretRefused as error:
            self._returned(text, aim)
            self._refused = self._entry.message
            key = self.presentation.keys.get("send_as", "")
            self._say("secret", Tone.REFUSED, found=_found(error), key=key)
        except IsolaError as error:
            self._returned(text, aim)
            self._say("sent_back", Tone.REFUSED, error=error.message)
        except Exception as error:
            LOG.exception("accepting a message failed")
            self._returned(text, aim)
            self._say("sent_back", Tone.REFUSED, error=type(error).__name__)
        else:
            self._unsent.remove(text)
        await self.save()

    def _returned(self, text: str, aim: Aim) -> None:
        """Give a refused text back, with the target that was chosen for it."""
        self._unsent.remove(text)
        self._entry.put_back(text)
        self.aim = Aim(chosen=aim.chosen, locked=self.aim.locked, raw=aim.raw)
        self.preview(self._entry.message)


def _found(error: SecretRefused) -> str:
    findings = error.details.get("findings", [])
    assert isinstance(findings, list)
    return ", ".join(f"{each['kind']} {each['sample']}" for each in findings[:5])
