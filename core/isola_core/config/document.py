"""Reads YAML within bounds: size, depth, aliases, and no key twice. Every trouble has its line."""

from __future__ import annotations

import codecs
from typing import Final

import yaml

from isola_core.secrets import mask
from isola_core.text import safe_label

SIZE_LIMIT: Final = 1 << 20
"""Bytes. A configuration of a thousand projects has some 200,000."""

DEPTH_LIMIT: Final = 32
NODE_LIMIT: Final = 100_000
"""Values after aliases are followed: ten lines of aliases can stand for billions."""


class DocumentError(Exception):
    """The text cannot be used as a configuration; `problems` has one line for each reason."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems


def parse_document(content: bytes) -> dict[str, object]:
    """The mapping that a YAML document holds. Raises `DocumentError`."""
    text = _decode(content)
    if not text.strip():
        raise DocumentError("line 1: the file is empty")
    try:
        return _construct(yaml.SafeLoader(text))
    except yaml.MarkedYAMLError as error:
        raise DocumentError(_explain(error, text)) from error
    except yaml.YAMLError as error:
        raise DocumentError(_unreadable(error)) from error
    except RecursionError as error:
        raise DocumentError("line 1: it is nested too deeply") from error
    except (ValueError, TypeError, OverflowError) as error:  # a date of month 13, a huge number
        raise DocumentError(f"a value cannot be read: {_short(str(error))}") from error


def _construct(loader: yaml.SafeLoader) -> dict[str, object]:
    try:
        root = loader.get_single_node()
        if root is None:
            raise DocumentError("line 1: the file holds nothing but comments")
        problems = _check(root)
        if not isinstance(root, yaml.MappingNode):
            problems.append(
                f"{_line(root)}: expected keys such as `judge:` at the top, got {_kind(root)}"
            )
        if problems:
            raise DocumentError(*problems)
        value: dict[str, object] = loader.construct_document(root)
        return value
    finally:
        loader.dispose()


def _decode(content: bytes) -> str:
    if len(content) > SIZE_LIMIT:
        raise DocumentError(f"the file is larger than {SIZE_LIMIT:,} bytes")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DocumentError("line 1: the file is UTF-16; save it as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise DocumentError(f"line {line}: not UTF-8 (byte 0x{byte:02x})") from error


def _check(root: yaml.Node) -> list[str]:
    """Problems of the tree that YAML itself lets pass."""
    problems: list[tuple[int, str]] = []
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: yaml.Node, depth: int) -> int:
        key = id(node)
        if key in open_nodes:
            raise DocumentError(f"{_line(node)}: an alias stands inside of what it stands for")
        if key in sizes:
            return sizes[key]
        if depth > DEPTH_LIMIT:
            raise DocumentError(f"{_line(node)}: nested more than {DEPTH_LIMIT} levels deep")
        open_nodes.add(key)
        total = 1
        if isinstance(node, yaml.MappingNode):
            problems.extend(_keys(node))
            total += sum(
                size(name, depth + 1) + size(value, depth + 1) for name, value in node.value
            )
        elif isinstance(node, yaml.SequenceNode):
            total += sum(size(value, depth + 1) for value in node.value)
        if total > NODE_LIMIT:
            raise DocumentError(f"{_line(node)}: more than {NODE_LIMIT:,} values, aliases counted")
        open_nodes.discard(key)
        sizes[key] = total
        return total

    size(root, 1)
    return [f"line {line}: {problem}" for line, problem in sorted(problems)]


def _keys(node: yaml.MappingNode) -> list[tuple[int, str]]:
    """Keys that are no words or stand there twice, each with its line."""
    problems = []
    seen: dict[str, int] = {}
    for name, _ in node.value:
        line = name.start_mark.line + 1
        if not isinstance(name, yaml.ScalarNode):
            problems.append((line, f"a key is a word, got {_kind(name)}"))
            continue
        if name.tag == "tag:yaml.org,2002:merge":
            continue
        if name.tag != "tag:yaml.org,2002:str":
            problems.append((line, f"a key is a word, put {_short(name.value)!r} in quotes"))
        if name.value in seen:
            first = seen[name.value]
            shown = _short(name.value)
            problems.append((line, f"{shown!r} stands here twice, first in line {first}"))
        seen.setdefault(name.value, line)
    return problems


def _explain(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return _short(error.problem or "it is not YAML")
    where = f"line {mark.line + 1}, column {mark.column + 1}"
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: mark.column + 1] and not line[: mark.column].strip():
        return f"{where}: a tab cannot indent, use spaces"
    said = _short(error.problem or "it is not YAML")
    return f"{where}: {said}{f' ({_short(error.context)})' if error.context else ''}"


def _unreadable(error: yaml.YAMLError) -> str:
    """A character that YAML forbids; the error knows its position only."""
    if isinstance(error, yaml.reader.ReaderError):
        character = error.character
        number = character if isinstance(character, int) else ord(character)
        return f"at character {error.position + 1}: U+{number:04X} is not allowed in YAML"
    return _short(str(error))


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def _kind(node: yaml.Node) -> str:
    match node:
        case yaml.SequenceNode():
            return "a list"
        case yaml.MappingNode():
            return "a mapping"
        case _:
            return "a single value"


def _short(text: str) -> str:
    return safe_label(mask(text), 80)
