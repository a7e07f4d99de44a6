"""The questions that Claude Code asks inside a turn, and the answers in its own form.

A `can_use_tool` request becomes one question; the tool AskUserQuestion becomes one for each of its
questions, and is answered when all of them are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from isola_core.errors import InvalidInput
from isola_core.ports import DENY, OTHER, Question

ALLOW: Final = "allow"
ALWAYS: Final = "always"
ACCEPT_EDITS: Final = "mode"

_DETAIL_LIMIT: Final = 20_000
_DENIED: Final = "The person did not allow this."


@dataclass(slots=True)
class Request:
    """One open request of the child, and what has been answered of it so far."""

    id: str
    tool: str
    input: Mapping[str, object]
    rules: tuple[object, ...]
    modes: tuple[object, ...]
    reason: str
    questions: tuple[Question, ...]
    answers: dict[str, str] = field(default_factory=dict)

    @property
    def open(self) -> tuple[Question, ...]:
        """The questions that still wait for an answer."""
        return tuple(each for each in self.questions if each.id not in self.answers)

    def answer(self, question: Question, choice: str, text: str) -> dict[str, object] | None:
        """Take one answer; the response to send, or None while others are still open.

        Raises `InvalidInput` for a choice that was not offered.
        """
        offered = dict(question.choices)
        if self.tool == "AskUserQuestion":
            return self._chosen(question, choice, text, offered)
        if choice not in offered:
            raise InvalidInput(f"{choice!r} is not one of the answers: {', '.join(offered)}.")
        self.answers[question.id] = choice
        match choice:
            case "deny":
                return {"behavior": "deny", "message": text.strip() or _DENIED}
            case "always":
                return {**self._allowed(), "updatedPermissions": list(self.rules)}
            case "mode":
                return {**self._allowed(), "updatedPermissions": list(self.modes)}
            case _:
                return self._allowed()

    def _allowed(self) -> dict[str, object]:
        return {"behavior": "allow", "updatedInput": dict(self.input)}

    def _chosen(
        self, question: Question, choice: str, text: str, offered: Mapping[str, str]
    ) -> dict[str, object] | None:
        if choice == DENY:
            for each in self.questions:
                self.answers[each.id] = DENY
            return {"behavior": "deny", "message": text.strip() or _DENIED}
        if choice == OTHER and text.strip():
            said = text.strip()
        else:
            picked = [each.strip() for each in choice.split(",")]
            if not picked or any(each not in offered or each == OTHER for each in picked):
                raise InvalidInput(f"{choice!r} is not one of the answers: {', '.join(offered)}.")
            said = ", ".join(offered[each] for each in picked)
        self.answers[question.id] = said
        if self.open:
            return None
        answers = {
            str(asked.get("question")): self.answers[each.id]
            for asked, each in zip(_asked(self.input), self.questions, strict=True)
        }
        return {"behavior": "allow", "updatedInput": {**self.input, "answers": answers}}


def read_request(request_id: str, request: Mapping[str, object]) -> Request | None:
    """A `can_use_tool` request; None where it is something else."""
    tool, given = request.get("tool_name"), request.get("input")
    if request.get("subtype") != "can_use_tool" or not isinstance(tool, str):
        return None
    tool_input: Mapping[str, object] = given if isinstance(given, dict) else {}
    suggested = request.get("permission_suggestions")
    suggestions = [each for each in suggested if isinstance(each, dict)] if isinstance(
        suggested, list
    ) else []  # fmt: skip
    rules = tuple(each for each in suggestions if each.get("type") != "setMode")
    modes = tuple(each for each in suggestions if each.get("type") == "setMode")
    reason = str(request.get("decision_reason") or "")
    if tool == "AskUserQuestion" and _asked(tool_input):
        questions = _choices(request_id, tool_input)
    else:
        questions = (_permission(request_id, tool, tool_input, rules, modes, reason),)
    return Request(request_id, tool, tool_input, rules, modes, reason, questions)


def _permission(
    request_id: str,
    tool: str,
    tool_input: Mapping[str, object],
    rules: tuple[Mapping[str, object], ...],
    modes: tuple[Mapping[str, object], ...],
    reason: str,
) -> Question:
    choices = [(ALLOW, "Allow once")]
    if rules:
        choices.append((ALWAYS, f"Always allow {', '.join(map(_rule, rules))}"))
    if modes:
        named = ", ".join(str(each.get("mode", "another mode")) for each in modes)
        choices.append((ACCEPT_EDITS, f"Allow, and use the mode {named} from now on"))
    choices.append((DENY, "Deny"))
    detail = "\n\n".join(part for part in (show_input(tool, tool_input), reason) if part)
    return Question(request_id, f"Allow {tool}?", detail, tuple(choices), tool)


def _rule(suggestion: Mapping[str, object]) -> str:
    """What a suggestion would allow, and for how long, in words."""
    match suggestion.get("destination"):
        case "session":
            where = "in this session"
        case "userSettings":
            where = "in all projects"
        case _:
            where = "in this project"
    if suggestion.get("type") == "addDirectories":
        folders = suggestion.get("directories")
        named = ", ".join(map(str, folders)) if isinstance(folders, list) else "more folders"
        return f"{named} {where}"
    rules = suggestion.get("rules")
    named = ", ".join(
        f"{rule.get('toolName')}({rule['ruleContent']})"
        if rule.get("ruleContent")
        else str(rule.get("toolName"))
        for rule in (rules if isinstance(rules, list) else [])
        if isinstance(rule, dict)
    )
    return f"{named or 'this'} {where}"


def _asked(tool_input: Mapping[str, object]) -> list[Mapping[str, object]]:
    asked = tool_input.get("questions")
    return [each for each in asked if isinstance(each, dict)] if isinstance(asked, list) else []


def _choices(request_id: str, tool_input: Mapping[str, object]) -> tuple[Question, ...]:
    questions = []
    for number, asked in enumerate(_asked(tool_input)):
        options = asked.get("options")
        listed = [each for each in options if isinstance(each, dict)] if isinstance(
            options, list
        ) else []  # fmt: skip
        choices = [(str(place + 1), str(each.get("label"))) for place, each in enumerate(listed)]
        described = [
            f"{place + 1}. {each.get('label')}: {each['description']}"
            for place, each in enumerate(listed)
            if each.get("description")
        ]
        if asked.get("multiSelect"):
            described.append("Several answers may be chosen, such as 1,2.")
        questions.append(
            Question(
                f"{request_id}:{number}",
                str(asked.get("question", "")),
                "\n".join(described),
                (*choices, (OTHER, "Something else"), (DENY, "Do not answer")),
                "AskUserQuestion",
            )
        )
    return tuple(questions)


def show_input(tool: str, tool_input: Mapping[str, object]) -> str:
    """A tool's input as text for a person: a command as it is, everything else as fields."""
    command = tool_input.get("command")
    if tool == "Bash" and isinstance(command, str):
        lines = [command]
        if isinstance(described := tool_input.get("description"), str) and described:
            lines.append(f"({described})")
        return _cut("\n".join(lines))
    shown = [
        f"{name}: {value}"
        if isinstance(value, str)
        else f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in tool_input.items()
    ]
    return _cut("\n".join(shown))


def _cut(text: str) -> str:
    if len(text) <= _DETAIL_LIMIT:
        return text
    return f"{text[:_DETAIL_LIMIT]}\n… {len(text) - _DETAIL_LIMIT} more characters"
