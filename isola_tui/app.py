"""The terminal program: composes the home screen over a `Runtime`, and starts and ends it all."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from isola_core.errors import ConfigError, IsolaError
from isola_core.paths import ensure_private_dir, private_open
from isola_core.secrets import mask
from isola_tui.board import Board
from isola_tui.keygate import KeyGate
from isola_tui.keymap import as_textual, key_label, keys_of
from isola_tui.lines import one_line
from isola_tui.messages import language_of, load_texts
from isola_tui.presentation import Presentation
from isola_tui.screens.forever import run_forever
from isola_tui.screens.help import SHOWN, HelpScreen
from isola_tui.screens.home import HomeScreen
from isola_tui.themes import theme_of
from isola_tui.widgets.entry import Entry
from isola_tui.widgets.notice import Tone

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime

LOG: Final = logging.getLogger("isola")

PALETTE: Final = frozenset(SHOWN) - {"send", "newline", "palette", "interrupt", "back"}
"""The acts that the palette offers; the others mean nothing outside the entry."""

OPENERS: Final = frozenset(
    {
        *("answer", "correct", "edit", "go_to", "help", "menu", "new_project", "palette"),
        *("search", "send_as", "why"),
    }
)
"""The acts that give the keyboard to a dialog or a card."""

QUIT_AGAIN_MS: Final = 10_000
"""How long the first of the two quit keys counts."""


class IsolaApp(App[int]):
    """One program over one `Runtime`, which whoever made it closes."""

    TITLE = "isola"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", "Help", id="help", priority=True),
        Binding("ctrl+p", "command_palette", "Commands", id="palette"),
        Binding("ctrl+q", "quit", "Quit", id="quit", priority=True),
        Binding("ctrl+c", "interrupt", "Copy or quit", id="interrupt", priority=True),
    ]

    def __init__(
        self,
        runtime: Runtime,
        *,
        conversation: str = "terminal-1",
        language: str = "en",
        zone: tzinfo = UTC,
    ) -> None:
        # with NO_COLOR Textual draws shades of grey, unless the terminal's own colours are meant
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.runtime = runtime
        self.conversation = conversation
        self.texts = load_texts(language)
        self._zone = zone
        self._keys: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._quit_asked: int | None = None
        self._gate = KeyGate(self, super().on_event, OPENERS)

    async def on_event(self, event: events.Event) -> None:
        """Keys go through the gate, so that a burst stays in order."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._gate.take(event)
        else:
            await super().on_event(event)

    # -- life

    def on_mount(self) -> None:
        """Show home, then start what works in the background."""
        self.theme = theme_of(self.runtime.config.theme)
        self.set_keymap(as_textual(self.runtime.config.keys))
        self._keys = self._bound_keys()
        home = HomeScreen(self.runtime, self.conversation, self._presentation)
        self.push_screen(home)
        work = (self.runtime.dispatcher.run, self.runtime.tick_forever)
        self._tasks = [asyncio.create_task(run_forever(each, home.tell_failure)) for each in work]

    async def on_unmount(self) -> None:
        """Stop what works in the background."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def home(self) -> HomeScreen:
        """The home screen, whatever lies over it."""
        return next(each for each in self.screen_stack if isinstance(each, HomeScreen))

    def _presentation(self, board: Board) -> Presentation:
        window = self.runtime.core.settings.isolation_ms
        return Presentation(self.texts, dict(board.projects), self._keys, window, self._zone)

    def _bound_keys(self) -> dict[str, str]:
        """Every act's first key, as people write it."""
        bindings = (*IsolaApp.BINDINGS, *HomeScreen.BINDINGS, *Entry.BINDINGS)
        return {
            name: key_label(keys[0])
            for name, keys in keys_of(bindings, self.runtime.config.keys).items()
        }

    # -- what is always there

    def action_help(self) -> None:
        """Show the help, once."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.home.presentation, list(self._keys.items())))

    def action_interrupt(self) -> None:
        """Copy what is selected in the entry; else ask, then quit."""
        entry = self.home.entry
        if self.screen is self.home and entry.selected_text:
            self.copy_to_clipboard(entry.selected_text)
            return
        self._ask_to_quit("interrupt", always=True)

    async def action_quit(self) -> None:
        """Quit; where a turn runs or text waits, only when asked twice."""
        self._ask_to_quit("quit", always=False)

    def _ask_to_quit(self, key: str, *, always: bool) -> None:
        now = self.runtime.clock.now()
        asked, self._quit_asked = self._quit_asked, now
        if asked is not None and now - asked <= QUIT_AGAIN_MS:
            self.leave(0)
            return
        home, texts = self.home, self.texts
        reasons = []
        if running := {view.project for view in home.board.running()}:
            names = ", ".join(sorted(home.presentation.name(each) for each in running))
            reasons.append(texts("notice.quit_running", projects=names))
        if home.entry.message.strip():
            reasons.append(texts("notice.quit_text"))
        if not reasons and not always:
            self.leave(0)
            return
        shown = self._keys[key]
        said = (
            texts("notice.quit", reasons=" · ".join(reasons), key=shown)
            if reasons
            else texts("notice.quit_plain", key=shown)
        )
        while self.screen is not home:
            self.pop_screen()
        home.notice.say(said, Tone.HINT)

    def leave(self, code: int) -> None:
        """Keep the draft, then end."""

        async def end() -> None:
            with contextlib.suppress(IsolaError):
                await self.home.composer.save()
            self.exit(code, return_code=code)

        self.run_worker(end(), exit_on_error=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every act, by name, in the palette."""
        yield SystemCommand(self.texts("action.theme"), "", self.search_themes)
        owners: tuple[App[int] | HomeScreen | Entry, ...] = (self, self.home, self.home.entry)
        offered: set[str] = set()
        for owner in owners:
            for binding in Binding.make_bindings(owner.BINDINGS):
                name = binding.id or ""
                if name in PALETTE - offered:
                    offered.add(name)
                    act = partial(self.run_action, binding.action, owner)
                    yield SystemCommand(self.texts(f"action.{name}"), self._keys[name], act)


def run(config: Path | None) -> int:
    """Open the terminal program; its exit code. What keeps it closed is said in plain text."""
    from isola_tui.bindings import screen_problems
    from isola_tui.lost_terminal import outlive_terminal
    from isola_tui.paste import disarm_pastes
    from isola_tui.runtime import open_runtime
    from isola_tui.slot import conversation_slot

    disarm_pastes()
    outlive_terminal()

    async def opened() -> int:
        async with open_runtime(config) as runtime:
            if problems := screen_problems(runtime.config):
                raise ConfigError("\n".join(problems), problems=problems)
            with (
                conversation_slot(runtime.paths.runtime_dir, os.environ) as conversation,
                _log_to(runtime.paths.state_dir),
            ):
                app = IsolaApp(
                    runtime,
                    conversation=conversation,
                    language=language_of(runtime.config.language, os.environ),
                    zone=datetime.now().astimezone().tzinfo or UTC,
                )
                with _ended_by_signals(app):
                    await app.run_async(mouse=runtime.config.mouse)
                return app.return_code or 0

    try:
        return asyncio.run(opened())
    except IsolaError as error:
        for line in error.message.splitlines():
            print(f"isola: {one_line(line, 2_000)}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def _ended_by_signals(app: IsolaApp) -> Iterator[None]:
    """SIGTERM and SIGHUP end the program as a key would, so that the terminal is restored."""
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(each, app.leave, 128 + each)
    try:
        yield
    finally:
        for each in (signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(each)


@contextlib.contextmanager
def _log_to(state_dir: Path) -> Iterator[None]:
    """Warnings go to a private file: a line on the terminal would tear the screen."""
    stream = private_open(ensure_private_dir(state_dir) / "isola.log", "a")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Masked("%(asctime)s %(name)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        stream.close()


class _Masked(logging.Formatter):
    """A formatter whose lines hold no credential."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, masked."""
        return mask(super().format(record))


__all__ = ["IsolaApp", "run"]
