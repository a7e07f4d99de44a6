"""The `claude` harness: Claude Code as a long-lived child for each session (`mode: stream`).

The text that the agent gets is the message byte for byte, with one space before a leading `/`.
Receipt, recovery and rewind rest on Claude Code's own transcript.
"""

from __future__ import annotations

from collections.abc import Mapping

from isola_core.ports import Harness
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.harness import ClaudeHarness
from isola_harnesses.registry import HarnessServices
from isola_harnesses.settings import read_settings

__all__ = ["ClaudeHarness", "ClaudeSettings", "create"]


def create(settings: Mapping[str, object], services: HarnessServices) -> Harness:
    """The harness of a `type: claude` section. Raises `ConfigError` naming each wrong setting."""
    read = read_settings(ClaudeSettings, settings, "the claude harness")
    return ClaudeHarness(read, services.env, services.clock)
