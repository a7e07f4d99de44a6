"""What a command prints: the reply is found in it, and nothing else becomes one."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.ports import FailureKind
from isola_harnesses.command_output import (
    Shape,
    at,
    find_document,
    parse_path,
    text_reply,
    without_escapes,
)
from tests.harnesses.command_bench import Bench


async def test_noise_before_and_after_is_not_the_reply(tmp_path: Path) -> None:
    body = """
print('starting'); print('config {"result": "not this"}'); print('{"result": "nor this"}')
print(json.dumps({'result': 'this', 'n': {'deep': [1]}}, indent=2))
print('done {'); print('[1, 2]'); print('{"level": "info"}'); print('\\x1b[32mbye\\x1b[0m')
"""
    one = Bench(tmp_path / "b", body, reply="json", reply_path="result")
    assert (await one.say()).reply == "this"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("reply", ["json", "last-json-line"])
async def test_json_is_found_on_either_stream(tmp_path: Path, stream: str, reply: str) -> None:
    body = (
        f'print(\'\\x1b[2K{{"result": "this"}}\\x1b[0m\', file=sys.{stream})\n'
        "print('noise'); print('noise', file=sys.stderr)"
    )
    one = Bench(tmp_path / "b", body, reply=reply, reply_path="result")
    assert (await one.say()).reply == "this"


async def test_a_log_line_never_becomes_the_reply(tmp_path: Path) -> None:
    body = 'print(\'{"level": "info", "msg": "started"}\'); print("boom", file=sys.stderr)'
    one = Bench(tmp_path / "b", body, reply="last-json-line", reply_path="result")
    await one.refused("no JSON with result", "boom")


async def test_the_last_line_that_matches_is_the_reply(tmp_path: Path) -> None:
    body = """
for kind, text in [("message", "half"), ("result", "whole"), ("usage", "7 tokens")]:
    print(json.dumps({"type": kind, "text": text}))
"""
    one = Bench(
        tmp_path / "b",
        body,
        reply="last-json-line",
        reply_path="text",
        reply_match={"type": "result"},
    )
    assert (await one.say()).reply == "whole"


async def test_escapes_are_stripped_from_text(tmp_path: Path) -> None:
    body = r"""
sys.stdout.write("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b]52;c;eA==\x1b\\")
sys.stdout.write("\x1bP1$r\x1b\\a\x1b(Bb\x1b7\x9b2Jc\x1b]open [/x] 好\r\nend\x07\n\n")
"""
    one = Bench(tmp_path / "b", body)
    assert (await one.say()).reply == "red link abc]open [/x] 好\nend"


@pytest.mark.parametrize(
    ("envelope", "words", "kind"),
    [
        ({"is_error": True, "result": "API Error: 500"}, "API Error: 500", FailureKind.ERROR),
        (
            {"is_error": True, "result": "slow down", "api_error_status": 429},
            "slow down",
            FailureKind.RATE_LIMITED,
        ),
        (
            {"ok": False, "error": {"message": "log in", "code": 401}},
            "log in",
            FailureKind.AUTH_EXPIRED,
        ),
        ({"type": "error", "message": "broken"}, "broken", FailureKind.ERROR),
        ({"error": "a\x1b[2Jb", "result": "half"}, "ab", FailureKind.ERROR),
    ],
)
@pytest.mark.parametrize("reply", ["json", "last-json-line", "text"])
async def test_an_error_envelope_is_never_a_reply(
    tmp_path: Path, envelope: dict[str, object], words: str, kind: FailureKind, reply: str
) -> None:
    path = None if reply == "text" else "result"
    body = f"print({json.dumps(envelope)!r})"
    one = Bench(tmp_path / "b", body, reply=reply, reply_path=path)
    result = await one.refused("reports an error", words)
    assert result.failure is (kind)


async def test_a_failing_status_is_a_failed_turn_and_says_the_last_words(tmp_path: Path) -> None:
    key = "sk-" + "ant-api03-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2
    body = f"print('a reply'); print('bad key {key}', file=sys.stderr); sys.exit(3)"
    one = Bench(tmp_path / "b", body)
    result = await one.refused("status 3", "bad key")
    assert "Ab3dEf6hIj9k" not in repr(result)
    assert result.meta["status"] == 3


async def test_a_silent_success_is_a_failed_turn(tmp_path: Path) -> None:
    await Bench(tmp_path / "b", "print(' \\n\\x1b[0m')").refused("answer is empty")


async def test_a_killed_program_is_a_failed_turn(tmp_path: Path) -> None:
    body = "print('half', flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    await Bench(tmp_path / "b", body).refused("signal 9")


async def test_fifty_megabytes_stay_bounded_and_the_answer_is_found(tmp_path: Path) -> None:
    body = """
for _ in range(800): sys.stdout.write("x" * 65535 + "\\n")
print(json.dumps({"result": "after all that"}))
"""
    one = Bench(
        tmp_path / "b",
        body,
        reply="last-json-line",
        reply_path="result",
        max_output_bytes=2**20,
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await one.say()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.reply == "after all that"
    assert grown < 20 * 1024
    assert isinstance(result.meta["dropped_bytes"], int)
    assert result.meta["dropped_bytes"] > 50_000_000


async def test_a_text_that_does_not_fit_is_no_reply(tmp_path: Path) -> None:
    body = "sys.stdout.write('x' * 300_000)"
    one = Bench(tmp_path / "b", body, max_output_bytes=65536)
    await one.refused("more than 65536 bytes")


NOISE = st.text(st.characters() | st.sampled_from('{}[]":,\\\n\x1b\x9b\x07'), max_size=80)
SHAPE = Shape(reply=parse_path("$.result"))


@given(st.lists(NOISE, max_size=5), st.text(), st.booleans(), st.booleans())
def test_the_reply_is_found_in_any_noise_before_it(
    noise: list[str], reply: str, indented: bool, lines: bool
) -> None:
    document = json.dumps({"result": reply}, indent=2 if indented and not lines else None)
    before = "\n".join(noise).replace("[", "(").replace("{", "(")
    found = find_document((f"{before}\n{document}\nbye }}",), SHAPE, lines=lines)
    assert at(found, ("result",)) == reply


@given(NOISE, st.booleans())
def test_no_output_is_too_strange(text: str, lines: bool) -> None:
    find_document((text,), SHAPE, lines=lines)
    assert "\x1b" not in text_reply(text)
    assert not set(without_escapes(text)) & {"\x1b", "\x9b", "\x07"}


@pytest.mark.parametrize("hostile", ["[", "{\n", "[1,\n", '{"a":\n', "\x1b]0;", "\x1b["])
def test_output_made_to_be_expensive_is_read_in_bounded_time(hostile: str) -> None:
    started = time.monotonic()
    find_document((hostile * (2**21 // len(hostile)),), SHAPE, lines=False)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("result", ("result",)),
        ("$.result", ("result",)),
        ("result.payloads[0].text", ("result", "payloads", 0, "text")),
        ("[-1].a-b", (-1, "a-b")),
    ],
)
def test_a_path_is_read_as_steps(path: str, steps: tuple[str | int, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize("path", ["", "$", "a.", ".a", "a[x]", "a[0", "a..b", "a[0]b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        parse_path(path)
