"""Stage 0: the projects that a text addresses with `@`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from isola_core.attribution.context import Addressed
from isola_core.model import Target
from isola_core.text import is_unspaced, name_key

_BODY: Final = r"""[^\s@,，;；:：、。！？!?()（）\[\]{}<>《》"'“”‘’|\\`~*=&%$^+]"""
_MARK: Final = re.compile(
    r"^(?P<fence>```|~~~)[^\n]*\n.*?(?:^(?P=fence)|\Z)|`[^`\n]*`"  # code: read over
    rf"|(?P<escape>[\\@])?@(?P<body>{_BODY}{{1,200}})",
    re.MULTILINE | re.DOTALL,
)
_OPEN_MARK: Final = re.compile(rf"(?P<escape>[\\@])?@(?P<body>{_BODY}{{0,200}})\Z")
_WRITTEN: Final = re.compile(rf"{_BODY}{{1,200}}")
_FENCE: Final = re.compile(r"^(?:```|~~~)", re.MULTILINE)
LANE: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""As lanes are written in the configuration; capitals in a message are the same lane."""
_LATIN_HEAD: Final = re.compile(r"[A-Za-z0-9._/-]+")
_OPENERS: Final = frozenset('([{（【「《<"“‘,，;；、:：。！？!?|')
_CLOSERS: Final = frozenset(')]}）】」》>"”’,，;；、:：。！？!?|.…')
_AFTER_MARK: Final = re.compile(r"(?:[\s,，:：;；、]|[.。](?=\s|\Z))+")
"""What stands between a mark at the start and the text proper; `.env` keeps its dot."""


def addressed(text: str, names: Mapping[str, str]) -> Addressed:
    """The targets named with `@project` or `@project/lane` as whole tokens, and the text without.

    `names` maps the key of each name, alias and id (`text.name_key`) to a project id.

    Marks at the start and the end of the text are taken out; a mark inside stays as the bare name,
    so that the sentence can still be read and no agent takes it for a file mention of its own.
    `\\@name` and `@@name` of a registered name are literal and lose the sign of escape. Code
    (fenced or between backticks) is never read. Anything else with an `@` is text.
    """
    if "@" not in text:
        return Addressed((), text)
    targets: dict[Target, None] = {}
    pieces: list[tuple[str, bool]] = []
    at = 0
    for match in _MARK.finditer(text):
        found = _read(text, match, names) if match.group("body") else None
        if found is None:
            continue
        target, end = found
        literal = match.group("escape") is not None
        pieces.append((text[at : match.start()], False))
        if literal:
            pieces.append((text[match.start() + 1 : end], False))
        else:
            targets[target] = None
            pieces.append((text[match.start() + 1 : end], True))
        at = end
    pieces.append((text[at:], False))
    return Addressed(tuple(targets), _without_marks(pieces))


def open_mark(text: str) -> str | None:
    """What stands behind the `@` that the end of the text is still writing, perhaps nothing yet.

    None where there is none: an escaped one, one in code, one inside of a word.
    """
    line = text.rpartition("\n")[2]
    match = _OPEN_MARK.search(line[-250:])
    if match is None or match.group("escape"):
        return None
    at = len(line) - len(line[-250:]) + match.start()
    if not _starts_token(line, at) or line[:at].count("`") % 2 or len(_FENCE.findall(text)) % 2:
        return None
    return match.group("body")


def written(name: str) -> str | None:
    """A name as it can stand behind an `@`: `my app` as `my-app`; None where it cannot."""
    joined = "-".join(name.split())
    fits = _WRITTEN.fullmatch(joined) and name_key(joined) == name_key(name)
    return joined if fits and not joined.endswith((".", "…")) else None


def _read(text: str, match: re.Match[str], names: Mapping[str, str]) -> tuple[Target, int] | None:
    """The target of one mark and where the mark ends, or None if it is only text."""
    if not _starts_token(text, match.start()):
        return None
    body = match.group("body").rstrip(".…")
    begin = match.start("body")
    for candidate in _token_bodies(text, begin, body):
        target = _target(candidate, names)
        if target is not None:
            return target, begin + len(candidate)
    return None


def _starts_token(text: str, at: int) -> bool:
    if at == 0:
        return True
    before = text[at - 1]
    return before.isspace() or before in _OPENERS or is_unspaced(before)


def _token_bodies(text: str, begin: int, body: str) -> list[str]:
    """What may be the whole token: all of it, or a Latin name that Chinese follows directly."""
    bodies: list[str] = []
    after = text[begin + len(body) : begin + len(body) + 1]
    if body and (not after or after.isspace() or after in _CLOSERS):
        bodies.append(body)
    head = _LATIN_HEAD.match(body)
    if head is not None and head.end() < len(body) and is_unspaced(body[head.end()]):
        bodies.append(head.group())
    return bodies


def _target(body: str, names: Mapping[str, str]) -> Target | None:
    project = names.get(name_key(body))
    if project is not None:
        return Target(project)
    name, slash, lane = body.rpartition("/")
    project = names.get(name_key(name)) if slash else None
    lane = lane.lower()
    if project is None or (lane and not LANE.fullmatch(lane)):
        return None
    return Target(project, lane)


def _without_marks(pieces: list[tuple[str, bool]]) -> str:
    """Join the pieces, leaving out marks that nothing but marks stands before, or after."""
    first = 0
    while first < len(pieces) and (pieces[first][1] or _is_gap(pieces[first][0])):
        first += 1
    if first == len(pieces):
        return ""
    last = len(pieces) - 1
    while pieces[last][1] or not pieces[last][0].strip():
        last -= 1
    kept = [text for text, _ in pieces[first : last + 1]]
    if first > 0 and (gap := _AFTER_MARK.match(kept[0])):
        kept[0] = kept[0][gap.end() :]
    if last < len(pieces) - 1:
        kept[-1] = kept[-1].rstrip()
    return "".join(kept)


def _is_gap(text: str) -> bool:
    return not text or _AFTER_MARK.fullmatch(text) is not None
