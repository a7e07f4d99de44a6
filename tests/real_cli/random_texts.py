"""Texts that programs mangle: leading signs, 64 KB, CJK, emoji, tabs; each with a mark of its own."""

from __future__ import annotations

import random

from isola_core.text import normalise_message

LEADING = ("", "", "", "!", "/", "?", "#", "@", " ", "\t", "\n", "//", "!!", "/clear ", "/cost ")
ALPHABETS = (
    "abcdefghij klmnop QRST 0123456789 .,;:()[]{}<>\"'`\\|$&*~^%",
    "发票迁移审计项目设置回滚检索文档测试 ，。",
    "インボイスの移行 検索 テスト",
    "청구서 마이그레이션 검색",
    "🎉👩‍👩‍👧🇪🇺👍🏽 e\u0301 \ufe0f\u200d\u200b\u2028",
    "\t \n\n",
)
SIZES = (1, 5, 20, 80, 400, 2000)


def random_text(source: random.Random, number: int) -> str:
    size = 64 * 1024 if number % 50 == 7 else source.choice(SIZES)
    alphabet = source.choice(ALPHABETS) + source.choice(ALPHABETS)
    body = "".join(source.choice(alphabet) for _ in range(size))
    text = f"{source.choice(LEADING)}{body}⟦{number}⟧"
    return normalise_message(text)
