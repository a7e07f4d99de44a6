"""The screen's states as pictures, one SVG file each, beside this file in `__snapshots__`.

`pytest tests/tui/snapshots --snapshot-update` accepts what has changed: look at it first
(`scripts/screenshots` draws the same states).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_textual_snapshot import SVGImageExtension  # type: ignore[import-untyped]
from syrupy.assertion import SnapshotAssertion

from tests.tui.pane_states import PANE_STATES
from tests.tui.stage import on_stage, opened, picture
from tests.tui.states import STATES, State

ALL = (*STATES, *PANE_STATES)


@pytest.mark.parametrize("state", ALL, ids=[each.name for each in ALL])
async def test_state(state: State, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    async with (
        opened(tmp_path / "home", projects=state.projects) as runtime,
        on_stage(runtime, size=state.size, language=state.language, theme=state.theme) as stage,
    ):
        await state.arrange(stage)
        assert await picture(stage) == snapshot(name=state.name).use_extension(SVGImageExtension)
