"""Keys that come faster than a dialog opens wait for it, and reach it in their order.

A dialog is mounted asynchronously. Without this, the letters of a burst (`^r` and `sea⏎` in one
write: tmux send-keys, a slow line, a fast hand) would land in the entry, and Enter would send them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from textual import events
from textual.message_pump import MessagePump
from textual.widgets import Input, TextArea

from isola_tui.widgets.entry import Entry

if TYPE_CHECKING:
    from textual.app import App

PATIENCE_S: Final = 2.0
"""The longest that keys wait for one act; then they go where the keyboard is."""

ROUNDS: Final = 2
"""How often everything between the keyboard and the app must have come to rest: the act itself,
then what it posted (`Input.Submitted`, a dialog's answer)."""

Pressed = events.Key | events.Paste


class KeyGate:
    """Passes keys on; holds them while an act is opening or closing something.

    `forward` is what Textual does with a key. `openers` are the binding ids that give the keyboard
    to something else: where one of them opened nothing, the keys behind it were not meant for the
    entry and are dropped.
    """

    def __init__(
        self,
        app: App[Any],
        forward: Callable[[events.Event], Awaitable[None]],
        openers: Collection[str],
    ) -> None:
        self._app = app
        self._forward = forward
        self._openers = openers
        self._held: deque[Pressed] = deque()
        self._work: asyncio.Task[None] | None = None

    async def take(self, event: Pressed) -> None:
        """Pass a key on at once where it only types; else in its turn."""
        if self._work is None and self._types(event):
            await self._forward(event)
            return
        self._held.append(event)
        if self._work is None:
            self._work = asyncio.create_task(self._pass_on())

    async def _pass_on(self) -> None:
        try:
            while self._held:
                event = self._held.popleft()
                typing = self._types(event)
                opener = self._opener(event)
                screen = self._app.screen
                await self._forward(event)
                if typing:
                    continue
                await self._rest()
                if opener and not self._opened(opener, screen):
                    self._held.clear()
        finally:
            self._work = None

    def _types(self, event: Pressed) -> bool:
        """Whether the widget with the keyboard handles this key itself, in order."""
        focused = self._app.focused
        if isinstance(event, events.Paste):
            return isinstance(focused, TextArea | Input)
        if not isinstance(focused, TextArea | Input):
            return False
        if focused.check_consume_key(event.key, event.character):
            return True
        active = self._app.screen.active_bindings.get(event.key)
        if active is None or active.node is not focused:
            return False
        return isinstance(focused, Entry) and active.binding.id not in self._openers

    def _opener(self, event: Pressed) -> str:
        if isinstance(event, events.Paste):
            return ""
        active = self._app.screen.active_bindings.get(event.key)
        name = active.binding.id if active is not None else None
        return name if name is not None and name in self._openers else ""

    def _place(self) -> tuple[object, object]:
        return self._app.screen, self._app.focused

    def _opened(self, opener: str, screen: object) -> bool:
        """Whether the keyboard is where the act wanted it.

        A card that a correction led to was not meant by letters for a list of projects.
        """
        if isinstance(self._app.focused, Entry):
            return False
        return opener == "answer" or self._app.screen is not screen

    async def _rest(self) -> None:
        """Wait until the act has run, and what it opened has the keyboard."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                quiet = 0
                while quiet < ROUNDS:
                    before = self._place()
                    await self._round()
                    quiet = quiet + 1 if self._place() == before else 0
        except TimeoutError:
            return

    async def _round(self) -> None:
        """Let every pump from the keyboard up to the app handle what stands in its queue."""
        start = self._app.focused or self._app.screen
        for node in start.ancestors_with_self:
            await _handled(node)


async def _handled(pump: MessagePump) -> None:
    done = asyncio.Event()
    if pump.call_later(done.set):
        await done.wait()
