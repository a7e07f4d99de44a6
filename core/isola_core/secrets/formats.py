"""Credentials that show what they are: known beginnings, web tokens, PEM blocks, logins in URLs."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from isola_core.secrets.finding import MARKER, Finding, View, looks_random

_JOINT: Final = re.compile(
    r"""(?:
        \\{0,3}\r?\n[ \t>|]{0,80}              # a line break, after a backslash too, in quoted mail
      | \\{1,2}(?:r\\{1,2})?n                  # a line break written as an escape
      | ["']\s{0,80}[+.]\s{0,80}["']           # two string literals put together
      | ["'][ \t]{0,80}\n[ \t]{0,80}["']
      | [\u00ad\u200b-\u200d\u2060\ufeff]      # characters nobody sees
    )+""",
    re.VERBOSE,
)

_PEM_LIMIT: Final = 16_384
"""Characters from BEGIN to END; an RSA key of 16,384 bits has some 12,800."""

_JUDGED: Final = 4096
"""Characters of a key that are looked at. However long it is, all of it is reported."""

_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_DOTTED: Final = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class _Format:
    """One kind of key: its beginning (a pattern), what may follow, and at least how much of it."""

    kind: str
    prefix: str
    body: re.Pattern[str]
    minimum: int
    exact: bool = False


_FORMATS: Final = (
    _Format("anthropic-key", r"sk-ant-", _KEY, 16),
    _Format("openai-key", r"sk-(?:proj|svcacct|admin|None)-", _KEY, 16),
    _Format("openai-key", r"sk-", _KEY, 20),
    _Format("github-key", r"github_pat_", _KEY, 20),
    _Format("github-key", r"gh[pousr]_", _DOTTED, 20),
    _Format("gitlab-key", r"gl(?:pat|dt|rt|ptt|cbt|soat)-", _DOTTED, 16),
    _Format("google-key", r"AIza", _KEY, 30),
    _Format("google-key", r"ya29\.", _DOTTED, 30),
    _Format("slack-key", r"xox[abeoprs]-", _KEY, 10),
    _Format("slack-key", r"xapp-", _KEY, 20),
    _Format("npm-key", r"npm_", _WORD, 30),
    _Format("aws-key", r"A[KS]IA", re.compile(r"[A-Z0-9]+"), 16, exact=True),
    _Format("stripe-key", r"[rs]k_(?:live|test)_", _WORD, 10),
    _Format("stripe-key", r"whsec_", re.compile(r"[A-Za-z0-9+/=]+"), 20),
    _Format("huggingface-key", r"hf_", _WORD, 30),
    _Format("groq-key", r"gsk_", _WORD, 30),
    _Format("pypi-key", r"pypi-AgE", _KEY, 30),
    _Format("sendgrid-key", r"SG\.", _DOTTED, 40),
    _Format("jwt", r"eyJ", _DOTTED, 20),
)
"""The more special beginning first."""

_PREFIX: Final = re.compile("|".join(f"({each.prefix})" for each in _FORMATS))
_RUN: Final = re.compile(r"[A-Za-z0-9]{16,}")
_EMPTY_BODY: Final = re.compile(r"(?i)[x*._-]*|.*(?:xxxx|your[-_]).*")
_LINE_END: Final = re.compile(r"""[ \t"'`,;)\\]*(?:[\r\n]|$)""")

_SETTING: Final = re.compile(r"[ \t]{0,8}(?:=[ \t]{0,8}[^\s=]|:)")
"""What follows the name of the next setting, in an env file or YAML."""

_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_WORD: Final = re.compile(
    r"""(?:[\s"'+,:>|-]|\\[nrt]?)*+((?:[A-Za-z-]{3,12}: )?[A-Za-z0-9+/=]+)"""
)
_PEM_BODY: Final = re.compile(r"[A-Za-z0-9+/]{4}")

_SCHEME: Final = re.compile(r"(?<=[A-Za-z0-9])://")
_LOGIN: Final = re.compile(r"""[^\s/?#@:"'<>]{0,256}:([^\s"'<>/]{1,512})@(?=[^\s@])""")
_NO_PASSWORD: Final = re.compile(r"(?i)\d{1,5}[?#,].*|\$.*|\{.*\}|%\w+%|[x*.]+|\[.*\]|your[-_].*")
"""A port with a query behind it, a variable, a placeholder."""

_WEBHOOK: Final = re.compile(
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9]{2,40}/[A-Za-z0-9]{2,40}/[A-Za-z0-9/]{6,80}"
    r"|discord(?:app)?\.com/api/webhooks/\d{5,30}/[A-Za-z0-9_-]{10,100}"
)


def find_formats(text: str) -> Iterator[Finding]:
    """Every credential of a known format, in no order."""
    yield from _find_keys(text)
    if "PRIVATE KEY" in text:
        yield from _find_private_keys(text)
    if "://" in text:
        yield from _find_logins(text)
    for match in _WEBHOOK.finditer(text):
        yield Finding("slack-webhook" if match[0][0] == "h" else "webhook", *match.span())


def _find_keys(text: str) -> Iterator[Finding]:
    view = View(text, _JOINT)
    joined = view.text
    ends: dict[re.Pattern[str], int] = {}
    """Where the run of each alphabet that was last looked at ends: no character is read twice."""
    at = 0
    while prefix := _PREFIX.search(joined, at):
        at = prefix.end()
        before = view.before(prefix.start())
        if before.isalnum() and before.isascii():
            continue
        chosen = _FORMATS[(prefix.lastindex or 1) - 1]
        end = ends.get(chosen.body, 0)
        if end < at:
            run = chosen.body.match(joined, at)
            end = run.end() if run else at
            ends[chosen.body] = end
        end = _cut(view, at, end, chosen)
        if end and _is_key(
            chosen, joined[prefix.start() : min(end, at + _JUDGED)], at - prefix.start()
        ):
            yield view.span(chosen.kind, prefix.start(), end)
            at = end


def _cut(view: View, start: int, end: int, chosen: _Format) -> int:
    """Where the key ends, 0 if it is none: a following line must look like more of it."""
    if end - start < chosen.minimum:
        return 0
    at = start
    for piece in view.pieces(start, end):
        if at > start and chosen.exact:
            if piece - start > chosen.minimum:
                break
        elif at > start and not _continues(view, at, piece, at - start >= chosen.minimum):
            break
        at = piece
    while at > start and view.text[at - 1] == ".":
        at -= 1
    length = at - start
    return at if length == chosen.minimum or (length > chosen.minimum and not chosen.exact) else 0


def _continues(view: View, start: int, end: int, enough: bool) -> bool:
    """Whether the piece behind a line break is more of the key and not the next sentence.

    `enough`: what came before would be a key already.
    """
    part = view.text[start : min(end, start + 64)]
    behind = view.origin(end - 1) + 1
    if _SETTING.match(view.source, behind):
        return False
    if len(part) >= 16 or any(each.isdigit() for each in part):
        return True
    if _LINE_END.match(view.source, behind):
        return not enough or looks_random(part) or len(part) >= 10
    if view.source[behind : behind + 1] in ('"', "'"):
        return True
    return looks_random(part) and not part.isupper()


def _is_key(chosen: _Format, key: str, prefix: int) -> bool:
    if chosen.kind == "jwt":
        return _is_token(key)
    body = key[prefix : prefix + 256]
    if chosen.exact:
        return True
    if _EMPTY_BODY.fullmatch(body):
        return False
    if chosen.prefix == "sk-":
        run = _RUN.search(body)
        return run is not None and (len(run[0]) >= 24 or any(each.isdigit() for each in run[0]))
    return looks_random(f" {body}") or bool(_RUN.search(body))


def _is_token(key: str) -> bool:
    """Whether it is a JSON web token: three parts or more, the first a JSON object."""
    parts = key.split(".", 5)
    if len(parts) < 3 or not parts[1]:
        return False
    header = parts[0][:4096]
    try:
        decoded = json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return False
    return isinstance(decoded, dict)


def _find_private_keys(text: str) -> Iterator[Finding]:
    """PEM blocks, also on one line, also cut off before their end. A mere BEGIN line passes."""
    at = 0
    closing: re.Match[str] | None = None
    exhausted = False
    while begin := _BEGIN.search(text, at):
        at = begin.end()
        if not exhausted and (closing is None or closing.start() < at):
            closing = _END.search(text, at)
            exhausted = closing is None
        if closing and closing.start() - at <= _PEM_LIMIT:
            if _PEM_BODY.search(MARKER.sub("", text[at : closing.start()])):
                yield Finding("pem-key", begin.start(), closing.end())
            at = closing.end()
            continue
        end = at
        while end - at < _PEM_LIMIT and (word := _PEM_WORD.match(text, end)):
            if len(word[1]) < (8 if end == at else 16) and (end == at or not looks_random(word[1])):
                break
            end = word.end()
        if end > at:
            yield Finding("pem-key", begin.start(), end)
            at = end


def _find_logins(text: str) -> Iterator[Finding]:
    """The password of `scheme://user:password@host`."""
    at = 0
    while scheme := _SCHEME.search(text, at):
        at = scheme.end()
        login = _LOGIN.match(text, at)
        if not login:
            continue
        if not _NO_PASSWORD.fullmatch(login[1]):
            yield Finding("url-login", *login.span(1))
        at = login.end()
