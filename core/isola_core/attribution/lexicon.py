"""The words of attribution, read from one data file a language and compiled once.

The files (`lexicon/*.yaml`) explain their own form. The templates become regular expressions over a
folded text in which every project name is replaced by `MENTION`; the phrases become a table for
covering a whole message word by word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Final

import msgspec

from isola_core.model import MemoryKind
from isola_core.text import fold, is_unspaced

MENTION: Final = "\x01"
"""Stands for a project's name in a text that templates are matched against."""

LANGUAGES: Final = ("en", "zh")

_MAX_TOKENS: Final = 24
_MAX_CHARS: Final = 300
"""A longer message, in words or characters, is never low signal."""

_MAX_REMEMBERED: Final = 2_000
"""Characters of a text that tell its kind."""

_SENTENCE_START: Final = r"(?:^|(?<=[\n.!?。！？…]))\s*"
_CLAUSE_START: Final = r"(?:^|(?<=[\n.,;!?:。，；！？：、…)）\"”]))\s*"
_CLAUSE_END: Final = r"(?=\s*(?:$|[\n.,;!?。，；！？、…)）\"”]))"
_PART: Final = re.compile(
    r"(?P<space>\s+)|(?P<mention>\{A\})|(?P<gap>\.\.\.)|(?P<start>\^\^?)|(?P<end>\$)"
    r"|\((?P<one>[^()]*)\)|\[(?P<maybe>[^\[\]]*)\]|(?P<words>[^\s()\[\]^${]+)"
)
_TOKEN: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SPACES: Final = re.compile(r"\s+")
_PHRASE_TOKEN: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*|#")


class LanguageFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One file of the lexicon as it is written."""

    language: str
    spaced: bool
    reference: list[str]
    not_reference: list[str]
    target: list[str]
    negated: list[str]
    new_project: list[str]
    confirm: list[str]
    filler: list[str]
    marker: list[str]
    plain: list[str]
    ordinary: list[str]
    stop: list[str]
    question: list[str]
    memory: dict[MemoryKind, list[str]]


@dataclass(frozen=True)
class Templates:
    """The templates of one kind in all languages, each with whether its words are spaced."""

    templates: tuple[tuple[str, bool], ...]

    @cached_property
    def expressions(self) -> tuple[re.Pattern[str], ...]:
        """Compiled when they are first needed: all of them take a tenth of a second."""
        return tuple(compile_template(each, spaced=spaced) for each, spaced in self.templates)

    def mentions(self, text: str) -> frozenset[int]:
        """Places of the mentions that an expression takes in, the last one of each match."""
        found: set[int] = set()
        for expression in self.expressions:
            found.update(match.start("A") for match in expression.finditer(text))
        return frozenset(found)

    def match(self, text: str) -> re.Match[str] | None:
        """The first match of any expression."""
        return next((hit for each in self.expressions if (hit := each.search(text))), None)


_CONFIRM, _FILLER, _MARKER, _PLAIN = 1, 2, 4, 8
_KINDS: Final = {"confirm": _CONFIRM, "filler": _FILLER, "marker": _MARKER, "plain": _PLAIN}


class Cover:
    """Phrases that may cover a message word by word, without a word left over."""

    def __init__(self, phrases: Iterable[tuple[str, int]]) -> None:
        table: dict[str, dict[tuple[str, ...], int]] = {}
        for phrase, kind in phrases:
            tokens = tuple(
                token
                for match in _PHRASE_TOKEN.finditer(fold(phrase))
                for token in _characters_apart(match.group())
            )
            if tokens:
                entry = table.setdefault(tokens[0], {})
                entry[tokens] = entry.get(tokens, 0) | kind
        self._table = {first: tuple(entry.items()) for first, entry in table.items()}

    def words(self) -> frozenset[str]:
        """Every phrase of a single word, joined where it is of single characters."""
        return frozenset(
            "".join(tokens)
            for entries in self._table.values()
            for tokens, _ in entries
            if len(tokens) == 1 or is_unspaced(tokens[0])
        )

    def kinds(self, tokens: Sequence[str], allowed: int, wanted: int) -> bool:
        """Whether allowed phrases cover all tokens, one of a wanted kind among them."""
        reached: list[int] = [0] * (
            len(tokens) + 1
        )  # 0: not reached, 1: reached, 3: with a wanted one
        reached[0] = 1
        for at, token in enumerate(tokens):
            if not reached[at]:
                continue
            keys = (token, "#") if len(token) <= 2 and token.isdecimal() else (token,)
            for key in keys:
                for phrase, kind in self._table.get(key, ()):
                    if not kind & allowed or not _fits(tokens, at, phrase):
                        continue
                    reached[at + len(phrase)] |= reached[at] | (3 if kind & wanted else 1)
        return reached[-1] == 3


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All languages together; immutable."""

    reference: Templates
    not_reference: Templates
    target: Templates
    negated: Templates
    new_project: Templates
    cover: Cover
    ordinary: frozenset[str]
    stop: frozenset[str]
    question: Templates
    memory: tuple[tuple[MemoryKind, Templates], ...]

    @classmethod
    def load(cls) -> Lexicon:
        """The lexicon of all languages, compiled once in a process."""
        return load_lexicon(LANGUAGES)

    def memory_kind(self, text: str) -> MemoryKind:
        """The kind of memory a text is by its words; questions and plain requests are EPISODE."""
        folded = squeeze(fold(text[:_MAX_REMEMBERED])).strip()
        if folded.endswith(("?", "？")) or self.question.match(folded):
            return MemoryKind.EPISODE
        return next(
            (kind for kind, templates in self.memory if templates.match(folded)),
            MemoryKind.EPISODE,
        )

    def is_confirmation(self, text: str) -> bool:
        """Whether a folded text is only thanks, consent, a choice, a nudge, or no words at all."""
        if len(text) > _MAX_CHARS:
            return False
        tokens = _tokens(text)
        if not tokens:
            return True
        return len(tokens) <= _MAX_TOKENS and self.cover.kinds(
            tokens, allowed=_CONFIRM | _FILLER, wanted=_CONFIRM
        )

    def is_continuation(self, text: str) -> bool:
        """Whether a folded text only points back: no word of it is of one project's subject."""
        tokens = _tokens(text) if len(text) <= _MAX_CHARS else []
        return 0 < len(tokens) <= _MAX_TOKENS and self.cover.kinds(
            tokens, allowed=_CONFIRM | _FILLER | _MARKER | _PLAIN, wanted=_MARKER
        )


def squeeze(text: str) -> str:
    """Runs of white space as one space or one line end: templates match those in linear time."""
    return _SPACES.sub(lambda run: "\n" if "\n" in run.group() else " ", text)


def _fits(tokens: Sequence[str], at: int, phrase: tuple[str, ...]) -> bool:
    if at + len(phrase) > len(tokens):
        return False
    return all(
        want == have or (want == "#" and len(have) <= 2 and have.isdecimal())
        for want, have in zip(phrase, tokens[at : at + len(phrase)], strict=True)
    )


def _tokens(text: str, limit: int = _MAX_TOKENS + 1) -> list[str]:
    """The first words of a folded text; characters one by one where words are not spaced."""
    found: list[str] = []
    for match in _TOKEN.finditer(text[:_MAX_CHARS].replace("’", "'")):
        found.extend(_characters_apart(match.group()))
        if len(found) >= limit:
            break
    return found


def _characters_apart(word: str) -> list[str]:
    found: list[str] = []
    start = 0
    for at, letter in enumerate(word):
        if is_unspaced(letter):
            if start < at:
                found.append(word[start:at])
            found.append(letter)
            start = at + 1
    if start < len(word):
        found.append(word[start:])
    return found


@cache
def load_lexicon(languages: tuple[str, ...] = LANGUAGES) -> Lexicon:
    """The lexicon of these languages. A broken file raises `msgspec.ValidationError`."""
    folder = files("isola_core.attribution") / "lexicon"
    return build_lexicon(
        [
            msgspec.yaml.decode((folder / f"{language}.yaml").read_bytes(), type=LanguageFile)
            for language in languages
        ]
    )


def build_lexicon(languages: Sequence[LanguageFile]) -> Lexicon:
    """Put language files together."""

    def templates(kind: str) -> Templates:
        return Templates(
            tuple(
                (template, language.spaced)
                for language in languages
                for template in getattr(language, kind)
            )
        )

    phrases = [
        (phrase, flag)
        for language in languages
        for kind, flag in _KINDS.items()
        for phrase in getattr(language, kind)
    ]
    cover = Cover(phrases)
    stop = frozenset(fold(word) for language in languages for word in language.stop)
    named = frozenset(fold(word) for language in languages for word in language.ordinary)
    return Lexicon(
        reference=templates("reference"),
        not_reference=templates("not_reference"),
        target=templates("target"),
        negated=templates("negated"),
        new_project=templates("new_project"),
        cover=cover,
        ordinary=named | stop | cover.words(),
        stop=stop,
        question=templates("question"),
        memory=tuple((kind, _of_kind(kind, languages)) for kind in languages[0].memory),
    )


def _of_kind(kind: MemoryKind, languages: Sequence[LanguageFile]) -> Templates:
    return Templates(
        tuple(
            (template, language.spaced)
            for language in languages
            for template in language.memory.get(kind, ())
        )
    )


def compile_template(template: str, *, spaced: bool) -> re.Pattern[str]:
    """One template of a language file as an expression; see `lexicon/en.yaml` for the form.

    The place of `{A}` is the group `A`. Every gap is bounded, so that matching stays linear.
    Raises `ValueError` for a template that cannot be read.
    """
    space = r"\s+" if spaced else r"\s*"
    source = ""
    glue = ""  # what stands between the last part and the next one
    opening = True  # nothing but optional words so far
    at = 0
    for part in _PART.finditer(template):
        if part.start() != at:
            break
        at = part.end()
        text = part.group()
        match part.lastgroup:
            case "space":
                glue = "" if opening else space
                continue
            case "start":
                source += _SENTENCE_START if text == "^^" else _CLAUSE_START
                glue = ""
                continue
            case "gap":
                source += r"(?:\s+[^\s\x01]+){0,6}?" if spaced else r"[^\n\x01。！？；]{0,12}?"
                continue
            case "one":
                source += (
                    "(?:" + "|".join(_glued(glue, each, spaced) for each in _choices(part)) + ")"
                )
            case "maybe" if opening:
                inner = "|".join(_literal(each, spaced) for each in _choices(part))
                source += f"(?:(?:{inner}){space}){{0,2}}"
                continue
            case "maybe":
                inner = "|".join(_glued(glue, each, spaced) for each in _choices(part))
                source += f"(?:{inner}){{0,2}}"
                continue
            case _:
                source += _glued(glue, text, spaced)
        glue = ""
        opening = False
    if at != len(template):
        raise ValueError(f"cannot read the template {template!r} at {template[at:]!r}")
    if spaced and not template.startswith("^"):
        source = r"(?<!\w)" + source
    return re.compile(source)


def _choices(part: re.Match[str]) -> list[str]:
    return part.group(part.lastgroup or 0).split("|")


def _glued(glue: str, text: str, spaced: bool) -> str:
    """A part behind its gap; punctuation and the end of a clause need no space before them."""
    if glue and not (text == "{A}" or text[0].isalnum()):
        glue = r"\s*"
    return glue + _literal(text, spaced)


def _literal(text: str, spaced: bool) -> str:
    if text == "{A}":
        return r"(?P<A>\x01)(?:['’]s)?"
    if text == "$":
        return _CLAUSE_END
    source = r"\s+".join(re.escape(word) for word in text.replace("’", "'").split())
    source = source.replace("'", "['’]")
    return source + (r"(?!\w)" if spaced and text[-1].isalnum() else "")
