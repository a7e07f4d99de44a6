"""Finds the names of projects in free text, and tells a name from an ordinary word."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isola_core.attribution.lexicon import Lexicon
from isola_core.attribution.words import words_of
from isola_core.model import Project
from isola_core.text import UNSPACED, fold, is_unspaced, name_key

_HEAD: Final = 1_500
_TAIL: Final = 500
"""Characters at both ends of a text that are searched for names; between is pasted matter."""

_NEAR: Final = 200
"""In a long text, a name further than this from both ends is no proof that the project is meant."""

_TOKEN: Final = re.compile(f"[{UNSPACED}]|(?:(?![{UNSPACED}])[^\\W_])+|[^\\w\\s-]")
_QUOTES: Final = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": "”",
    "‘": "’",
    "「": "」",
    "《": "》",
    "*": "*",
}
_JOINS_BEFORE: Final = frozenset("-_./\\@#$=~&+:%")
_JOINS_AFTER: Final = frozenset("-_/\\@=~&+(%")


@dataclass(frozen=True, slots=True)
class Mention:
    """One place in a folded text where a name stands.

    `projects` has several ids where they share the name. `whole` is False inside a path, an
    identifier or a call; `proof` says that the name alone shows that the project is meant: it is
    whole, no ordinary word, and not deep inside a long text.
    """

    projects: tuple[str, ...]
    start: int
    end: int
    whole: bool
    proof: bool


@dataclass(frozen=True, slots=True)
class _Name:
    tokens: tuple[str, ...]
    gaps: tuple[str, ...]
    written: str
    projects: tuple[str, ...]
    ordinary: bool
    ordinary_spaced: bool


@dataclass(frozen=True, slots=True)
class NameIndex:
    """What can be known of a set of projects beforehand. Immutable.

    `described` maps a word of names and descriptions to places in `listed`; `keys` a name's key to
    the one project that has it.
    """

    projects: tuple[Project, ...]
    listed: tuple[Project, ...]
    by_id: Mapping[str, Project]
    keys: Mapping[str, str]
    described: Mapping[str, tuple[int, ...]]
    names: Mapping[str, tuple[_Name, ...]]


def index_names(projects: tuple[Project, ...], lexicon: Lexicon) -> NameIndex:
    """Prepare the names and descriptions of these projects; retired ones are left out."""
    live = [project for project in projects if not project.retired]
    listed = tuple(project for project in live if project.listed)
    owners: dict[str, dict[str, None]] = {}
    for project in live:
        for name in (project.id, project.name, *project.aliases):
            owners.setdefault(name_key(name), {})[project.id] = None
    owners.pop("", None)
    written: dict[str, _Name] = {}
    for project in listed:
        for name in (project.name, *project.aliases, project.id):
            for entry in _spellings(name, owners, lexicon):
                written.setdefault(" ".join(entry.tokens), entry)
    by_first: dict[str, list[_Name]] = {}
    for entry in written.values():
        by_first.setdefault(entry.tokens[0], []).append(entry)
    return NameIndex(
        projects=projects,
        listed=listed,
        by_id={project.id: project for project in live},
        keys={key: next(iter(ids)) for key, ids in owners.items() if len(ids) == 1},
        described=_described(listed, lexicon),
        names={
            first: tuple(sorted(entries, key=lambda entry: -len(entry.tokens)))
            for first, entries in by_first.items()
        },
    )


def _described(listed: Sequence[Project], lexicon: Lexicon) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for at, project in enumerate(listed):
        text = " ".join((project.name, *project.aliases, project.id, project.description))
        for word in words_of(text):
            if word not in lexicon.stop:
                found[word] = (*found.get(word, ()), at)
    return found


def _spellings(
    name: str, owners: Mapping[str, Mapping[str, None]], lexicon: Lexicon
) -> list[_Name]:
    """A name as registered, and joined (`my-app` may be written `myapp`)."""
    projects = tuple(owners.get(name_key(name), ()))
    folded = fold(name).strip()
    found = list(_TOKEN.finditer(folded))
    if not found or not projects or not any(letter.isalnum() for letter in folded):
        return []
    tokens = tuple(match.group() for match in found)
    ends = [0, *(match.end() for match in found)]
    gaps = tuple(
        folded[end : match.start()] for end, match in zip(ends, found, strict=False) if end
    )
    ordinary = _is_ordinary(folded, tokens, lexicon)
    spaced = all(token in lexicon.ordinary for token in tokens) or ordinary
    spellings = [_Name(tokens, gaps, name.strip(), projects, ordinary, spaced)]
    joined = name_key(name)
    if any(gaps) and _TOKEN.fullmatch(joined):
        ordinary = _is_ordinary(joined, (joined,), lexicon)
        spellings.append(_Name((joined,), (), joined, projects, ordinary, ordinary))
    return spellings


def _is_ordinary(folded: str, tokens: tuple[str, ...], lexicon: Lexicon) -> bool:
    if folded in lexicon.ordinary or folded.replace(" ", "").isdecimal():
        return True
    letters = sum(len(token) for token in tokens)
    return letters < (2 if is_unspaced(folded[0]) else 3)


def find_mentions(
    raw: str, folded: str, index: NameIndex, is_plain_word: Callable[[str], bool]
) -> tuple[Mention, ...]:
    """The mentions in a text (`clip`ped and folded by the caller), leftmost and longest first.

    `is_plain_word` says of a project id whether other projects use its name as a plain word.
    """
    found = list(_TOKEN.finditer(folded))
    mentions: list[Mention] = []
    at = 0
    while at < len(found):
        hit = None
        for name in index.names.get(found[at].group(), ()):
            hit = _match(folded, found, at, name)
            if hit is not None:
                mentions.append(_mention(raw, folded, hit, name, is_plain_word))
                at += len(name.tokens)
                break
        if hit is None:
            at += 1
    return tuple(mentions)


def clip(text: str) -> str:
    """The two ends of a text in which names are looked for."""
    if len(text) <= _HEAD + _TAIL:
        return text
    return text[:_HEAD] + "\n" + text[-_TAIL:]


@dataclass(frozen=True, slots=True)
class _Hit:
    start: int
    end: int
    loose: bool
    spaced: bool


def _match(text: str, found: Sequence[re.Match[str]], at: int, name: _Name) -> _Hit | None:
    if at + len(name.tokens) > len(found):
        return None
    loose = spaced = False
    for offset, token in enumerate(name.tokens):
        if found[at + offset].group() != token:
            return None
        if not offset:
            continue
        gap = text[found[at + offset - 1].end() : found[at + offset].start()]
        registered = name.gaps[offset - 1]
        if not registered:
            if gap:
                return None
        elif gap.isspace():
            spaced = True
            loose = loose or not registered.isspace()
        elif gap not in ("", "-", "_"):
            return None
    start, end = found[at].start(), found[at + len(name.tokens) - 1].end()
    return _Hit(start, end, loose, spaced)


def _mention(
    raw: str, text: str, hit: _Hit, name: _Name, is_plain_word: Callable[[str], bool]
) -> Mention:
    whole = _is_whole(text, hit.start, hit.end)
    plain_word = (
        hit.loose
        or (name.ordinary_spaced if hit.spaced else name.ordinary)
        or any(is_plain_word(project) for project in name.projects)
    )
    near = len(text) <= 2 * _NEAR + 600 or min(hit.start, len(text) - hit.end) <= _NEAR
    proof = whole and near and (not plain_word or _is_capitalised(raw, name.written))
    start, end = hit.start, hit.end
    if start > 0 and end < len(text) and _QUOTES.get(text[start - 1]) == text[end]:
        start, end = start - 1, end + 1
    return Mention(name.projects, start, end, whole, proof)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a name stands alone, not inside a path, an identifier, a call or a domain."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    beyond = text[end + 1] if end + 1 < len(text) else " "
    if not is_unspaced(text[start]) and before in _JOINS_BEFORE:
        return False
    if is_unspaced(text[end - 1]):
        return True
    if after in ".:" and start and beyond.isalnum() and not is_unspaced(beyond):
        return False
    return after not in _JOINS_AFTER


def _is_capitalised(raw: str, written: str) -> bool:
    """Whether a name registered with capitals stands so in the text, and not for grammar's sake."""
    if written == written.lower():
        return False
    for match in re.finditer(rf"(?<![\w./-]){re.escape(written)}(?![\w/-])", raw):
        opens = re.search(
            r"(?:^|[.!?。！？\n:])\s*$", raw[max(0, match.start() - 20) : match.start()]
        )
        if not opens or written[1:] != written[1:].lower():
            return True
    return False
