"""The data files: every template compiles, and the phrases cover what they should and no more."""

from __future__ import annotations

from importlib.resources import files

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.attribution.lexicon import (
    LANGUAGES,
    MENTION,
    LanguageFile,
    Lexicon,
    build_lexicon,
    compile_template,
)
from isola_core.attribution.rules import is_low_signal
from isola_core.model import MemoryKind
from isola_core.text import fold

LEXICON = Lexicon.load()

CONFIRMATIONS = """
ok|OK!|Okay, thanks|yes|yes please|y|no|Nope.|👍|👍🏽👍🏽|🎉|...|?|!!!|thanks|Thank you very much!|continue|go on
do it|please do it|go ahead and do it|LGTM|looks good, ship it|option 2|2|the second one|retry|never mind
好|好的|好的，继续|继续|继续吧|谢谢|谢谢你！|嗯|嗯嗯|可以|可以的，谢谢|没问题|选第2个|选第二个|第3个|方案一|搞定了吗|辛苦了|ok，继续
"""

CONTINUATIONS = """
also fix that one|make it shorter|and the tests?|what did you change?|revert that last change|run the tests again
what about the second part|move it to a separate file|use the other approach instead|does it work now?
再改一下那个|把它改短一点|刚才说的那个再改改|还是报错|解释一下这部分|顺便更新一下文档|另一个也同样处理|那个怎么样了
"""

CONTENT = """
ok billing is broken|yes, but the invoice totals are wrong|continue with the refund export|thanks to the cache it is fast
add an invoice export|fix the login redirect|it crashes when the payment provider times out|option parsing is broken
好的，计费挂了|继续做退款导出|修复发票总额|可以用 redis 做缓存吗|谢谢页面打不开|再改一下发票模板|123456|no-op rows
"""


def lines(block: str) -> list[str]:
    return [each for line in block.split("\n") for each in line.split("|") if each]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_template_of_a_language_compiles(language: str) -> None:
    path = files("isola_core.attribution") / "lexicon" / f"{language}.yaml"
    words = msgspec.yaml.decode(path.read_bytes(), type=LanguageFile)
    assert words.language == language
    about_names = [*words.reference, *words.not_reference, *words.target, *words.negated]
    for template in about_names:
        assert "A" in compile_template(template, spaced=words.spaced).groupindex, template
    kinds = [template for group in words.memory.values() for template in group]
    for template in [*words.new_project, *words.question, *kinds]:
        assert compile_template(template, spaced=words.spaced).match("") is None, template


@pytest.mark.parametrize("template", ["(a|b", "a] {A}", "{B}", "a)"])
def test_a_template_that_cannot_be_read_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="cannot read the template"):
        compile_template(template, spaced=True)


def test_a_broken_language_file_is_refused_with_its_place() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$.confirm"):
        msgspec.convert({"confirm": [True]}, LanguageFile)


@pytest.mark.parametrize("text", lines(CONFIRMATIONS))
def test_short_answers_say_nothing_about_their_project(text: str) -> None:
    assert LEXICON.is_confirmation(fold(text))


@pytest.mark.parametrize("text", lines(CONTINUATIONS))
def test_messages_of_pronouns_and_plain_words_continue(text: str) -> None:
    assert LEXICON.is_continuation(fold(text))
    assert is_low_signal(text, LEXICON)


@pytest.mark.parametrize("text", lines(CONTENT))
def test_one_word_of_substance_is_enough_to_be_no_low_signal(text: str) -> None:
    assert not is_low_signal(text, LEXICON)


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    is_low_signal(text, LEXICON)
    assert isinstance(LEXICON.memory_kind(text), MemoryKind)


def test_a_long_message_is_never_low_signal() -> None:
    assert not is_low_signal("ok " * 500_000, LEXICON)
    assert not is_low_signal("好" * 500_000, LEXICON)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("we decided to use postgres", MemoryKind.DECISION),
        ("let's go with option B for retries", MemoryKind.DECISION),
        ("决定用 PostgreSQL", MemoryKind.DECISION),
        ("amounts must be integers in cents", MemoryKind.CONSTRAINT),
        ("never push to main", MemoryKind.CONSTRAINT),
        ("金额必须用整数", MemoryKind.CONSTRAINT),
        ("I prefer short names", MemoryKind.PREFERENCE),
        ("我更喜欢短名字", MemoryKind.PREFERENCE),
        ("beware: the sandbox resets nightly", MemoryKind.GOTCHA),
        ("it turns out the API limits by IP", MemoryKind.GOTCHA),
        ("注意：沙箱每晚重置", MemoryKind.GOTCHA),
        ("branches are named after tickets", MemoryKind.CONVENTION),
        ("the runbook is documented at https://example.com", MemoryKind.REFERENCE),
        ("remember that staging is on port 8080", MemoryKind.FACT),
        ("add an invoice export", MemoryKind.EPISODE),
        ("fix the login form", MemoryKind.EPISODE),
        ("must we keep the old export?", MemoryKind.EPISODE),
        ("how do I deploy without ever stopping", MemoryKind.EPISODE),
        ("要不要用 redis", MemoryKind.EPISODE),
        ("为什么必须重启？", MemoryKind.EPISODE),
        ("修一下登录", MemoryKind.EPISODE),
        ("", MemoryKind.EPISODE),
    ],
)
def test_the_kind_of_a_memory_shows_in_its_words(text: str, kind: MemoryKind) -> None:
    assert LEXICON.memory_kind(text) is kind


def test_gaps_in_templates_are_bounded() -> None:
    near = f"borrow the harness and all its fixtures from {MENTION}"
    far = f"borrow {'word ' * 40}from {MENTION}"
    assert LEXICON.reference.mentions(near)
    assert not LEXICON.reference.mentions(far)


def test_one_language_alone_is_a_lexicon() -> None:
    path = files("isola_core.attribution") / "lexicon" / "en.yaml"
    english = build_lexicon([msgspec.yaml.decode(path.read_bytes(), type=LanguageFile)])
    assert english.is_confirmation("thanks")
    assert not english.is_confirmation("谢谢")
