"""Credentials in free text: found before the first write, refused or masked.

Known key formats, private keys, logins in URLs, and `key=value` credentials in every spelling
people paste (quotes, JSON, YAML, env files, headers), also broken over lines. Entropy is not used:
hashes, UUIDs and the words themselves pass. Every step is linear in the text's length.

The rule sets that exist do not fit one entry line: detect-secrets 1.5 reads line by line (a key
broken over two is not seen), imports an HTTP client (0.1 s), knows no Chinese, and its default
detectors judge by entropy, so that hashes and plain words are hits.
"""

from __future__ import annotations

from isola_core.errors import SecretRefused
from isola_core.secrets.finding import MARKER, Finding
from isola_core.secrets.formats import find_formats
from isola_core.secrets.pairs import find_pairs

__all__ = ["MARKER", "Finding", "find_secrets", "mask", "masked_sample", "refuse_secrets"]

_PASSES = 20
"""Masking one secret can bare the next; real texts need one pass, two at most."""


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Every credential in `text`, in order, none overlapping another. Offsets are code points."""
    found = sorted(
        [*find_formats(text), *find_pairs(text)], key=lambda each: (each.start, -each.end)
    )
    merged: list[Finding] = []
    for each in found:
        if merged and each.start < merged[-1].end:
            last = merged[-1]
            kind = each.kind if last.kind == "credential" else last.kind
            merged[-1] = Finding(kind, last.start, max(last.end, each.end))
        else:
            merged.append(each)
    return tuple(merged)


def mask(text: str) -> str:
    """`text` with every finding replaced by `[masked kind]`. Masking twice changes nothing."""
    for _ in range(_PASSES):
        found = find_secrets(text)
        if not found:
            return text
        parts: list[str] = []
        at = 0
        for each in found:
            parts += (text[at : each.start], f"[masked {each.kind}]")
            at = each.end
        text = "".join(parts) + text[at:]
    return text if not find_secrets(text) else "[masked text]"


def masked_sample(text: str, finding: Finding) -> str:
    """Enough of the finding for its owner to know which one it is, such as `sk-a…9f`."""
    secret = text[finding.start : finding.end]
    secret = "".join(each for each in secret if each.isprintable())
    if len(secret) >= 20:
        return f"{secret[:4]}…{secret[-2:]}"
    return f"{secret[:1]}…" if len(secret) >= 8 else "…"


def refuse_secrets(text: str, field: str = "text") -> None:
    """Raise `SecretRefused` if `text` holds a credential; its details have masked samples only."""
    found = find_secrets(text)
    if not found:
        return
    findings = [{"kind": each.kind, "sample": masked_sample(text, each)} for each in found]
    named = ", ".join(f"{each['kind']} {each['sample']}" for each in findings[:5])
    raise SecretRefused(
        f"The {field} holds what looks like a credential ({named}). Nothing of it was stored. "
        "Take it out, or send the message unstored.",
        field=field,
        findings=findings,
    )
