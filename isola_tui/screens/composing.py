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

from isola_core.errors import IsolaError, SecretRefused
from isola_core.model import Attribution, Target
from isola_core.service.delegated import Incoming
from isola_core.text import is_blank
from isola_tui.aim import Aim
from isola_tui.board import Board
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
        self._saved = ""
        self._shown: Target | None = None
        """The target that the last frame showed."""
        self._saving = asyncio.Lock()

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
            self._saved = text
            if target is not None and target in self._board.projects:
                self.aim = Aim(chosen=Target(target))
            self._say("welcome_back", Tone.HINT)
        self.preview(self._entry.message)

    async def save(self) -> None:
        """Keep what stands in the entry, and what was sent but is not accepted yet."""
        async with self._saving:
            text = "\n".join([*self._unsent, self._entry.message])
            text = "" if is_blank(text) else text
            if text == self._saved:
                return
            target = self.aim.chosen.project if self.aim.chosen else None
            try:
                await self._runtime.service.save_draft(self._conversation, text, target)
            except IsolaError as error:
                self._say("draft_failed", Tone.REFUSED, error=error.message)
            else:
                self._saved = text

    # -- the target

    def typed(self, text: str) -> None:
        """The text has changed: show where it goes now; save the draft when typing rests."""
        self.preview(text)
        if self._rest is not None:
            self._rest.stop()
        self._rest = self._screen.set_timer(REST_S, self._rested)

    def preview(self, text: str) -> None:
        """Attribute a text, from memory alone, and show it."""
        beginning = text[:PREVIEWED]
        attribution = None if is_blank(beginning) else self._attributed(beginning)
        self.aim = Aim(text, attribution, self.aim.chosen, partial=len(text) > PREVIEWED)
        self.draw()

    def again(self) -> None:
        """Projects have changed: attribute the same text again."""
        self.preview(self.aim.text)

    def step(self, step: int) -> None:
        """Choose the next (1) or previous (-1) target by hand."""
        listed = [each.id for each in self._board.listed()]
        if (target := self.aim.stepped(step, listed)) is not None:
            self.aim = replace(self.aim, chosen=target)
            self.draw()

    def release(self) -> bool:
        """Let attribution choose again; False when nothing was chosen by hand."""
        if self.aim.chosen is None:
            return False
        self.aim = replace(self.aim, chosen=None)
        self.draw()
        return True

    def draw(self) -> None:
        """Show the target above the text."""
        aim = self.aim
        self._entry.border_title = self.presentation.target_line(aim, empty=is_blank(aim.text))
        self._screen.call_after_refresh(self._painted, aim.target)

    def _painted(self, target: Target | None) -> None:
        self._shown = target

    def _attributed(self, text: str) -> Attribution:
        asking = self._board.asking()
        return self._runtime.service.preview(text, self._conversation, asking=asking)

    async def _rested(self) -> None:
        self._rest = None
        if self.aim.partial:
            self._screen.run_worker(self._read_whole(), group="read", exit_on_error=False)
        await self.save()

    async def _read_whole(self) -> None:
        """Attribute the whole of a long text."""
        text = self.aim.text
        attribution = await asyncio.to_thread(self._attributed, text)
        if text == self.aim.text:
            self.aim = Aim(text, attribution, self.aim.chosen)
            self.draw()

    # -- sending

    async def submit(self, text: str) -> bool:
        """Send a text to the target that is shown. False: that was another one, so it came back.

        A very long text is read whole first. A target that no frame has shown yet (keys that came
        in one burst) is not passed on as seen: the pipeline decides, or asks.
        """
        aim = self.aim if self.aim.text == text else Aim(text, None, self.aim.chosen)
        self.aim = Aim()
        if aim.partial and aim.chosen is None:
            attribution = await asyncio.to_thread(self._attributed, text)
            if attribution.target != aim.target:
                self._entry.put_back(text)
                self._say("target_changed", Tone.HINT)
                return False
            aim = Aim(text, attribution)
        self._send(text, aim)
        return True

    def send_unstored(self) -> None:
        """Send what was refused, unstored; only while it still stands in the entry."""
        text, aim = self._refused, self.aim
        if text is None or self._entry.message != text:
            self._say("nothing_refused", Tone.HINT)
            return
        self.aim = Aim()
        self._entry.load_message("")
        self._send(text, aim, unstored=True)

    def _send(self, text: str, aim: Aim, *, unstored: bool = False) -> None:
        seen = aim.target is not None and aim.target == self._shown
        incoming = Incoming(
            conversation=self._conversation,
            text=text,
            targets=(aim.chosen,) if aim.chosen else (),
            shown=aim.attribution if seen else None,
            event_id=self._runtime.core.ids.new("e"),
            platform="terminal",
            asking=self._board.asking(),
            unstored=unstored,
        )
        self._unsent.append(text)
        self._refused = None
        self._screen.query_one(Notice).clear()
        self._screen.run_worker(self._accept(incoming, aim), group="accept", exit_on_error=False)

    async def _accept(self, incoming: Incoming, aim: Aim) -> None:
        try:
            await self._runtime.service.accept(incoming)
        except SecretRefused as error:
            self._returned(incoming.text, aim)
            self._refused = self._entry.message
            key = self.presentation.keys.get("unstored", "")
            self._say("secret", Tone.REFUSED, found=_found(error), key=key)
        except IsolaError as error:
            self._returned(incoming.text, aim)
            self._say("sent_back", Tone.REFUSED, error=error.message)
        except Exception as error:
            LOG.exception("accepting a message failed")
            self._returned(incoming.text, aim)
            self._say("sent_back", Tone.REFUSED, error=type(error).__name__)
        else:
            self._unsent.remove(incoming.text)
        await self.save()

    def _returned(self, text: str, aim: Aim) -> None:
        """Give a refused text back, with the target that was chosen for it."""
        self._unsent.remove(text)
        self._entry.put_back(text)
        self.aim = Aim(chosen=aim.chosen)
        self.preview(self._entry.message)


def _found(error: SecretRefused) -> str:
    findings = error.details.get("findings", [])
    assert isinstance(findings, list)
    return ", ".join(f"{each['kind']} {each['sample']}" for each in findings[:5])
