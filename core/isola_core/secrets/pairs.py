"""Credentials that their name gives away: `password = ...` in all the ways people write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from isola_core.secrets.finding import MARKER, Finding, View, looks_random

_JOINT: Final = re.compile(r"(?:\\\r?\n[ \t]{0,80}|[\u00ad\u200b-\u200d\u2060\ufeff])+")
"""Only what continues a line on purpose: after any other line break a new thought may begin."""

_NAME: Final = re.compile(
    r"""
    (?P<password> passw(?:or)?d | passphrase | pwd (?<![a-z]pwd) | pass(?<=_pass)(?![a-z]) )
  | (?P<key> secret(?:[ _-]?(?:access[ _-]?)?key)? | token | credential
           | (?:api|access|private|account|auth|encryption)[ _-]?key )
  | (?P<header> authorization )
  | (?P<bearer> bearer[ \t]{1,4}(?=[a-z0-9]) )
  | (?P<chinese> 密\s?[码碼] | 口令 | 密[钥鑰] | 令牌 )
    """,
    re.VERBOSE,
)
"""Matched against the text in lower case. Any word may stand in front of it: `DB_PASSWORD`."""

_SEPARATOR: Final = re.compile(
    r"""
    \d{0,2} (?:\\{0,3}["'`] | [\])*_]){0,6}                  # the name's own quote or bracket ends
    [ \t]{0,40}
    (?: (?P<assign> :=  | => | ={1,3} | :(?!:) | ： | ＝ | (?<=[a-z])>(?=[^\s>]) )
      | (?P<says> (?:is|was|to|=) (?=\s) ) )
    [ \t*_]{0,40}
    (?P<below> [|>]?[+-]?[ \t]{0,20}\r?\n[ \t>]{0,80} )?     # the value stands on the next line
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CHINESE_SEPARATOR: Final = re.compile(
    r"""["'`”」』]?\s{0,8}(?P<assign>[:：=＝]|是|为|為|就是|改成|改为|设为)?\s{0,8}[:：]?\s{0,8}"""
)
_OPTION: Final = re.compile(r"[ \t]{1,4}(?=[^\s-])")
_SCHEME: Final = re.compile(r"(?i)(?:bearer|basic|token|digest|apikey|key)[ \t]{1,4}")

_QUOTE: Final = re.compile(r"""[bru]?(\\{0,3}["'`])""")
_UNQUOTED: Final = re.compile(r"[^\s，。；、！？）】」』》”’\u3400-\u9fff]+")
_NEXT_PAIR: Final = re.compile(r"""[&;,]\s{0,8}["']?[A-Za-z_][\w.-]{0,40}["']?\s{0,4}[=:]|</""")
_CLOSERS: Final = "\"'`,;:)]}>.*\\"
_NEXT_LINE: Final = re.compile(
    r"""\r?\n[ \t]{0,80}([A-Za-z0-9+/=_.-]{8,4096})(?=[ \t"'`,;)]{0,8}(?:[\r\n]|$))"""
)
_TYPED: Final = re.compile(
    r"""[ \t]{0,8}(?:\|[ \t]{0,8}\w{1,20}[ \t]{0,8})?=[ \t]{0,8}(?=[bru]?["'])"""
)

_OPEN_PLACEHOLDER: Final = re.compile(r"<[^<>\n]{1,80}>|\[[^\[\]\n]{1,80}\]|\{[^{}\n]{1,80}\}")
"""What stands for a value and may hold blanks: `<your password>`."""

_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(65, 91)}

_QUOTED_LIMIT: Final = 4096
_JUDGED: Final = 256
"""Characters of a value that are looked at. However long it is, all of it is reported."""

_HARMLESS: Final = re.compile(
    r"""(?x)
      none | null | nil | true | false | undefined | empty | unset | missing | required | optional
    | hidden | redacted | masked | n/a | tbd | todo | changeme | yes | no | on | off | here | ask
    | str | string | int | integer | bool | boolean | bytes | any | object | text | char | varchar
    | number | secretstr | uuid | u?int(?:8|16|32|64) | utf-?8 | env | stdin | prompt | value | key
    | sha(?:1|256|512) | md5 | [hre]s256 | base(?:32|64) | oauth2? | uuid4 | argon2 | bcrypt | x509
    | ed25519 | aes256 | basic | bearer | jwt | password | passwd | secret | token | placeholder
    | example | sample
    """
)
"""Values that are types, algorithms, words for "nothing" or the name of the thing itself."""

_PLACEHOLDER: Final = re.compile(
    r"""(?ix)
      <.*> | \$.* | %\w+% | \{.*\} | \[.*\] | [x*.•…_-]+ | \.{3}.* | !\w+ .*
    | (?:your|insert|enter|replace|change|put|add)(?:[-_ ].* | me | this | it)?
    | (?:example|sample|placeholder|redacted|dummy)(?:[-_ ].*)?
    | \#.* | //.* | @\w+ | --?\w[\w-]* | (?:env|vault|ref|op|file|ssm|secret)[:.]/?/?.*
    """
)
_CODE: Final = re.compile(
    r"""(?x)
      [A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)*[(\[{<].*    # a call, a subscript
    | [A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_][\w]*)+               # an attribute
    | (?:await|new|not|lambda|return|f["']).*
    | [(\[{].*                                                          # a group, a list
    | [a-z]+(?:[A-Z][a-z]+)+ | [A-Z][a-z]+(?:[A-Z][a-z]+)+               # camelCase
    | [A-Z][A-Z_]*[A-Z]                                                 # A_CONSTANT
    """
)
_WORDS: Final = re.compile(r"[A-Za-z]+(?:[_-](?:[A-Za-z]+|v?\d{1,2}))*")
_FIGURE: Final = re.compile(
    r"v?\d+(?:[.,:/-]\d+)+|\d+|\d{1,7}(?:ms|[smhdkb%]|[kmg]b|px|min|sec|chars?|bytes?)|0x[0-9a-fA-F]{1,8}"
)
_PATH: Final = re.compile(
    r"""(?x)
      (?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][a-z._][\w.@-]*)+[/\\]?
    | [\w.-]+\.(?:md|py|ya?ml|json|txt|ts|js|go|rs|env|pem|toml)
    | [a-z][a-z0-9+.-]*://.*
    """
)
_BLANK: Final = re.compile(r"\s")
_MAIL: Final = re.compile(
    r"[\w.+-]+@(?:[\w-]+\.)+(?:com|org|net|io|dev|cn|de|edu|gov|uk|example|test)"
)


def find_pairs(text: str) -> Iterator[Finding]:
    """Every value that is named as a credential and looks like one, in order."""
    view = View(text, _JOINT)
    joined = view.text
    lowered = joined.lower()
    if len(lowered) != len(joined):  # one letter became two, and offsets would be wrong
        lowered = joined.translate(_ASCII_LOWER)
    at = 0
    run_end = 0
    while name := _NAME.search(lowered, at):
        at = name.end()
        kind = name.lastgroup or ""
        placed = _place(joined, name)
        if placed is None:
            continue
        start, strict = placed
        quote = _QUOTE.match(joined, start)
        if quote and (end := _closing(joined, quote)):
            start = quote.end()
        else:
            start = quote.end() if quote else start
            if run_end < start:
                run = _UNQUOTED.match(joined, start)
                run_end = run.end() if run else start
            end = _unquoted_end(joined, start, run_end)
            quote = None
        while marker := MARKER.match(joined, start):
            start = marker.end()
        if start >= end or (not quote and _OPEN_PLACEHOLDER.match(joined, start)):
            continue
        value = joined[start : min(end, start + _JUDGED)]
        if not _credible(
            kind,
            value,
            quoted=quote is not None,
            strict=strict,
            name=joined[name.start() : name.end()],
        ):
            typed = None if quote else _TYPED.match(joined, start + len(value))
            opening = _QUOTE.match(joined, typed.end()) if typed else None
            if not opening or not (end := _closing(joined, opening)):
                continue
            start = opening.end()
            if not _credible(
                kind,
                joined[start:end],
                quoted=True,
                strict=False,
                name=joined[name.start() : name.end()],
            ):
                continue
        elif not quote and end - start >= 16 and (more := _NEXT_LINE.match(joined, end)):
            end = more.end(1) if looks_random(more[1]) else end
        yield view.span("bearer" if kind in ("header", "bearer") else "credential", start, end)
        at = end


def _place(text: str, name: re.Match[str]) -> tuple[int, bool] | None:
    """Where the value begins, and whether it has to look random because the link is weak."""
    kind = name.lastgroup
    if kind == "bearer":
        return name.end(), True
    if kind == "chinese":
        separator = _CHINESE_SEPARATOR.match(text, name.end())
        return (separator.end(), not separator["assign"]) if separator else None
    if separator := _SEPARATOR.match(text, name.end()):
        if separator["says"] and kind != "password":
            return None
        if separator["assign"] == ">" and not _in_tag(text, name.start()):
            return None
        at = separator.end()
        strict = bool(separator["says"] or separator["below"])
        if kind == "header":
            quote = _QUOTE.match(text, at)
            if scheme := _SCHEME.match(text, quote.end() if quote else at):
                return scheme.end(), True
        return at, strict
    before = text[max(0, name.start() - 40) : name.start()]
    if re.search(r"(?:^|\s)--?[\w-]{0,30}$", before) or re.search(r"\blogin \S{1,30} $", before):
        option = _OPTION.match(text, name.end())
        return (option.end(), True) if option else None
    return None


def _in_tag(text: str, at: int) -> bool:
    return bool(re.search(r"<[\w:.-]{0,30}$", text[max(0, at - 32) : at]))


def _closing(text: str, quote: re.Match[str]) -> int:
    """Where the quoted value ends, 0 if the quote is never closed."""
    mark = quote[1]
    at = quote.end()
    limit = at + _QUOTED_LIMIT
    while (at := text.find(mark, at, limit)) >= 0:
        if len(mark) > 1 or text[at - 1] != "\\":
            return at
        at += 1
    return 0


def _unquoted_end(text: str, start: int, end: int) -> int:
    cut = _NEXT_PAIR.search(text, start, min(end, start + 2 * _JUDGED))
    end = cut.start() if cut else end
    while end > start and text[end - 1] in _CLOSERS:
        end -= 1
    return end


def _credible(kind: str, value: str, *, quoted: bool, strict: bool, name: str) -> bool:
    """Whether the value is a credential: no placeholder, code, type, path or prose."""
    value = value.strip()
    if not quoted and _CODE.fullmatch(value):
        return False
    word = value.strip(_CLOSERS).casefold()
    password = kind in ("password", "chinese")
    if _HARMLESS.fullmatch(word) or word == name.casefold() or _PLACEHOLDER.fullmatch(value):
        return False
    if _PATH.fullmatch(value) and not (len(value) >= 32 and any(each.isdigit() for each in value)):
        return False
    if _BLANK.search(value):
        return quoted and _is_passphrase(value)
    if not value.isascii() and not quoted:
        return False
    if not password and _MAIL.fullmatch(value):
        return False
    if _FIGURE.fullmatch(value):
        return value.isdigit() and len(value) >= (4 if password else 8)
    if kind == "bearer":
        return len(value) >= 16 and looks_random(value)
    minimum = 4 if password else 6
    if len(value) < minimum:
        return False
    if strict:
        special = password and any(not each.isalnum() for each in value)
        return len(value) >= 6 and (looks_random(value) or special)
    if quoted:
        return password or not _WORDS.fullmatch(value) or looks_random(value) or len(value) >= 16
    if _WORDS.fullmatch(value) and not (password and any(each.isdigit() for each in value)):
        return (value.isalpha() and len(value) >= 16) or _env_value(name, value)
    return True


def _env_value(name: str, value: str) -> bool:
    """`DB_PASSWORD=swordfish`: in capitals it is a setting, and its value is meant literally."""
    return name.isupper() and value.isalpha() and len(value) >= 6


def _is_passphrase(value: str) -> bool:
    """Several words in quotes: prose passes, unless digits or signs stand inside the words."""
    words = value.split()
    if len(words) > 6:
        return False
    return any(
        any(each.isdigit() for each in word)
        and any(each.isalpha() for each in word)
        and len(word) >= 6
        for word in words
    )
