"""Reads the last user text and the last tool result out of a request of each protocol.

Agents put text of their own around what the person said; it is taken out here, as measured on the
real programs: `<system-reminder>` (Claude Code), `<environment_context>` (Codex), a leading date
and a trailing runtime line (OpenClaw), and our own quoted context.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

Json = dict[str, object]

_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})
_OTHERS_TEXT = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md",
    "<local-command-caveat>",
    "<permissions instructions>",
    "<skills_instructions>",
)
_NOISE = (
    re.compile(r"<system-reminder>.*?</system-reminder>", re.S),
    re.compile(
        r"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?(?:<<<END_OPENCLAW_INTERNAL_CONTEXT>>>|\Z)", re.S
    ),
    re.compile(r'^<isola-context id="(\w+)">\n.*?\n</isola-context id="\1">\n\n', re.S),
    re.compile(r"^\s*\[\w{3} \d{4}-\d\d-\d\d \d\d:\d\d[^\]]*\] "),
    re.compile(r"\n\nRuntime: agent=[^\n]*\Z"),
)


def without_noise(text: str) -> str:
    """`text` without what an agent wrapped around it; exactly `text` where that is nothing."""
    clean = text
    for pattern in _NOISE:
        clean = pattern.sub("", clean)
    return clean if clean == text else clean.strip("\n")


def objects(value: object) -> list[Json]:
    """The JSON objects of a list; nothing of anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts(content: object) -> list[str]:
    """The texts of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    found: list[str] = []
    for block in content:
        if isinstance(block, str):
            found.append(block)
        elif isinstance(block, dict) and block.get("type") in _TEXT_BLOCKS:
            found.append(str(block.get("text", "")))
    return found


def last_text(found: Iterable[str]) -> str:
    """The last text that a person said, noise taken out; "" if there is none."""
    clean = [without_noise(each) for each in found]
    said = [each for each in clean if each.strip() and not each.lstrip().startswith(_OTHERS_TEXT)]
    return said[-1] if said else ""


def result_text(content: object) -> str:
    """A tool's result as text."""
    if isinstance(content, dict):
        return json.dumps(content)
    return "\n".join(texts(content))


def read_messages(body: Json) -> tuple[str, str | None]:
    """Anthropic Messages: (last user text, tool result in the last user message or None)."""
    users = [each for each in objects(body.get("messages")) if each.get("role") == "user"]
    if not users:
        return "", None
    content = users[-1].get("content")
    result: str | None = None
    for block in objects(content):
        if block.get("type") == "tool_result":
            result = result_text(block.get("content"))
    return last_text(texts(content)), result


def read_chat(body: Json) -> tuple[str, str | None]:
    """Chat completions: (last user text, tool result after it or None)."""
    result: str | None = None
    for message in reversed(objects(body.get("messages"))):
        role = message.get("role")
        if role == "tool" and result is None:
            result = result_text(message.get("content"))
        elif role == "user" and (said := last_text(texts(message.get("content")))):
            return said, result
    return "", result


def read_responses(body: Json) -> tuple[str, str | None]:
    """Responses: (last user text, tool result after it or None)."""
    items = body.get("input")
    if isinstance(items, str):
        return items, None
    user, result = "", None
    for item in objects(items):
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") == "user":
            if said := last_text(texts(item.get("content"))):
                user, result = said, None
        elif str(kind).endswith("call_output"):
            result = result_text(item.get("output"))
    return user, result


def asks_for_title(body: Json, user: str) -> bool:
    """Claude Code 2.1.197 asks for a title beside the first turn: no tools, a fixed form."""
    return not body.get("tools") and ("<session>" in user or "Write the title" in user)
