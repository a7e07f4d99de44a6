"""Finds a command's reply in what it printed: among log lines, escapes and other JSON.

A log line never becomes the reply: where JSON is expected, only a JSON document that has the
configured path (and matches what it must match) counts, wherever it stands, on either output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isola_core.ports import FailureKind
from isola_core.text import is_blank, normalise_message, safe_label

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")
_PATH: Final = re.compile(r"(?:\$\.?)?(?:[^.\[\]$]+|\[-?\d+\])(?:\.[^.\[\]]+|\[-?\d+\])*")
_ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-Z\\^-~]"
)
_DOCUMENT_START: Final = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_MAX_SCANNED: Final = 64 * 2**20
"""Characters that looking for documents may read in all: output can be made to cost more."""

_WINDOW: Final = 2**16
_ATTEMPT_COST: Final = 2**10

Step = str | int


def parse_path(path: str) -> tuple[Step, ...]:
    """`result.payloads[0].text` as steps; raises `ValueError` for what is not such a path."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is not a path such as result.payloads[0].text")
    bare = path.removeprefix("$").removeprefix(".")
    return tuple(
        found.group(1) if found.group(2) is None else int(found.group(2))
        for found in _STEP.finditer(bare)
    )


def at(document: object, path: Sequence[Step]) -> object:
    """What stands at a path, or None."""
    for step in path:
        match document:
            case dict() if isinstance(step, str):
                document = document.get(step)
            case list() if isinstance(step, int) and -len(document) <= step < len(document):
                document = document[step]
            case _:
                return None
    return document


def without_escapes(text: str) -> str:
    """`text` without terminal escape sequences; a lone or unfinished one loses its ESC only."""
    return normalise_message(_ESCAPES.sub("", text))


@dataclass(frozen=True, slots=True)
class Shape:
    """Where in a document what stands."""

    reply: tuple[Step, ...] = ()
    match: Mapping[tuple[Step, ...], object] | None = None
    error: tuple[Step, ...] = ()
    session: tuple[Step, ...] = ()

    def is_reply(self, document: object) -> bool:
        """Whether a document is the answer, a good or a bad one."""
        if not isinstance(document, dict | list):
            return False
        wanted = self.match or {}
        if any(at(document, path) != value for path, value in wanted.items()):
            return False
        return isinstance(at(document, self.reply), str) or self.error_in(document) is not None

    def error_in(self, document: object) -> str | None:
        """The error that a document reports, "" for one without words, None for no error.

        Without a configured path, the usual envelopes count: `is_error`, `ok: false`, `error`,
        and a `type` of error.
        """
        if self.error and (found := at(document, self.error)):
            return _words(found)
        if not isinstance(document, dict):
            return None
        error = document.get("error")
        if error or document.get("is_error") is True or document.get("ok") is False:
            reply = at(document, self.reply) if self.reply else document.get("result")
            return _words(error or reply or document.get("message"))
        if document.get("type") == "error":
            return _words(document.get("message"))
        return None


def _words(found: object) -> str:
    if isinstance(found, dict):
        found = found.get("message") or found.get("detail") or found.get("type")
    return safe_label(without_escapes(found), 300) if isinstance(found, str) else ""


def kind_of(document: object) -> FailureKind:
    """What an error document says about why, by an HTTP status anywhere it usually stands."""
    error = at(document, ("error",))
    codes = {at(document, (name,)) for name in ("api_error_status", "status", "code")}
    codes |= {at(error, (name,)) for name in ("status", "code")} if error else set()
    if 429 in codes:
        return FailureKind.RATE_LIMITED
    return FailureKind.AUTH_EXPIRED if codes & {401, 403} else FailureKind.ERROR


def text_reply(text: str) -> str:
    """A whole output as a reply: escapes gone, the last line ends gone."""
    reply = without_escapes(text).rstrip("\n")
    return "" if is_blank(reply) else reply


def find_document(texts: Sequence[str], shape: Shape, *, lines: bool) -> object | None:
    """The last answer in the outputs (the first output that has one wins), or None.

    With `lines` a document is one line; otherwise it begins a line and may span several.
    """
    for text in texts:
        clean = without_escapes(text)
        found = _last_line(clean, shape) if lines else _last_document(clean, shape)
        if found is not None:
            return found
    return None


def document_in(line: str) -> object | None:
    """The JSON document that a line is, or None."""
    bare = line.strip()
    if not bare.startswith(("{", "[")):
        return None
    try:
        return json.loads(bare)  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        return None


def _last_line(text: str, shape: Shape) -> object | None:
    for line in reversed(text.split("\n")):
        document = document_in(line)
        if document is not None and shape.is_reply(document):
            return document
    return None


def _last_document(text: str, shape: Shape) -> object | None:
    found: object | None = None
    for document in _documents(text):
        if shape.is_reply(document):
            found = document
    return found


def _documents(text: str) -> Iterator[object]:
    """The JSON documents that begin a line, left to right, none inside another."""
    scanned, place = 0, 0
    while scanned < _MAX_SCANNED and (start := _DOCUMENT_START.search(text, place)):
        begin = start.end()
        found = _decode(text[begin : begin + _WINDOW])
        if found.cut and begin + _WINDOW < len(text):
            found = _decode(text[begin:])
        scanned += found.read + _ATTEMPT_COST
        place = begin + (found.read if found.whole else 1)
        if found.whole:
            yield found.document


@dataclass(frozen=True, slots=True)
class _Decoded:
    """What a text begins with: a document of `read` characters, or none.

    `cut` says that there may be one if only the text were longer.
    """

    read: int
    document: object = None
    whole: bool = False
    cut: bool = False


def _decode(text: str) -> _Decoded:
    # Always a piece and never the whole output with an index: the decoder's errors count the lines
    # before them, which takes quadratic time where many lines begin like a document.
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        cut = error.pos > len(text) - 8 or error.msg.startswith("Unterminated")
        return _Decoded(len(text) if cut else error.pos, cut=cut)
    except RecursionError:
        return _Decoded(len(text))
    return _Decoded(end, document, whole=True)
