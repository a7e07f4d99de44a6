"""The environment that a child of ours inherits: the person's own, without what surrounds us."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NOT_INHERITED: Final = re.compile(
    r"CLAUDECODE|CLAUDE_CODE_(ENTRYPOINT|SSE_|SESSION|CHILD_|BRIDGE_|PARENT|AGENT|TEAM|TASK_LIST)"
    r"|CLAUDE_AGENT_SDK|CLAUDE_PID|AI_AGENT$|TMUX|STY$|OLDPWD$|ISOLA"
)
"""Matched at the start of a name: what says "you run inside another agent, or inside us".

With `CLAUDECODE` and friends an agent refuses to start, or takes itself for another one's child.
"""


def without_surroundings(env: Mapping[str, str]) -> dict[str, str]:
    """`env` for a child: nothing of the agent, terminal or Isola around us."""
    return {name: value for name, value in env.items() if not _NOT_INHERITED.match(name)}
