"""Statements about conversations, their inertia and drafts, and about messages."""

from __future__ import annotations

from dataclasses import dataclass

from isola_core.model import MessageView
from isola_core.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be stored. `masked` says that `text` is the masked copy of an unstored text."""

    id: str
    conversation: str
    text: str
    parent: str | None = None
    event_id: str | None = None
    platform: str = ""
    platform_id: str | None = None
    masked: bool = False
    raw: bool = False
    typed: str | None = None


def ensure_conversation(tx: Transaction, owner: str, conversation: str) -> None:
    """Register a conversation once."""
    tx.run(
        "INSERT OR IGNORE INTO conversations (id, owner, created) VALUES (?, ?, ?)",
        conversation,
        owner,
        tx.now,
    )


def insert_message(tx: Transaction, owner: str, message: NewMessage) -> None:
    """Store a message, before anything else happens to it."""
    tx.run(
        "INSERT INTO messages (id, owner, conversation, parent, event_id, platform, platform_id, "
        "text, typed, masked, raw, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        message.id,
        owner,
        message.conversation,
        message.parent,
        message.event_id,
        message.platform,
        message.platform_id,
        message.text,
        message.typed,
        int(message.masked),
        int(message.raw),
        tx.now,
    )
    tx.changed("message", message.id)


def replace_text(tx: Transaction, message_id: str, text: str) -> None:
    """The person changed a message that nothing has acted on yet."""
    tx.run("UPDATE messages SET text = ?, typed = NULL WHERE id = ?", text, message_id)
    tx.changed("message", message_id)


def message_by_event(tx: Transaction, owner: str, event_id: str) -> str | None:
    """The message that an event id already brought."""
    row = tx.one("SELECT id FROM messages WHERE owner = ? AND event_id = ?", owner, event_id)
    return row["id"] if row else None


def message_by_platform(tx: Transaction, owner: str, platform: str, platform_id: str) -> str | None:
    """The message that a platform's message id already brought."""
    row = tx.one(
        "SELECT id FROM messages WHERE owner = ? AND platform = ? AND platform_id = ?",
        owner,
        platform,
        platform_id,
    )
    return row["id"] if row else None


def message(tx: Transaction, owner: str, message_id: str) -> MessageView | None:
    """One message of this owner."""
    row = tx.one("SELECT * FROM messages WHERE owner = ? AND id = ?", owner, message_id)
    return message_view(row) if row else None


def message_view(row: Row) -> MessageView:
    """A `messages` row as people see it."""
    return MessageView(
        id=row["id"],
        conversation=row["conversation"],
        text=row["text"],
        created=row["created"],
        masked=bool(row["masked"]),
        parent=row["parent"],
    )


def undecided_messages(tx: Transaction, owner: str, before: int) -> list[MessageView]:
    """Messages stored before `before` that no decision and no child ever followed (a crash)."""
    rows = tx.all(
        "SELECT m.* FROM messages AS m WHERE m.owner = ? AND m.created < ? "
        "AND m.seq > (SELECT coalesce(max(seq), 0) - 1000 FROM messages) "
        "AND NOT EXISTS (SELECT 1 FROM decisions AS d WHERE d.message = m.id) "
        "AND NOT EXISTS (SELECT 1 FROM messages AS c WHERE c.parent = m.id) ORDER BY m.seq",
        owner,
        before,
    )
    return [message_view(row) for row in rows]


def set_inertia(
    tx: Transaction, owner: str, conversation: str, project: str, at: int | None = None
) -> None:
    """The conversation's last project, from `at` (now) on."""
    tx.run(
        "INSERT INTO inertia (owner, conversation, project, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (owner, conversation) DO UPDATE SET project = excluded.project, "
        "at = excluded.at",
        owner,
        conversation,
        project,
        tx.now if at is None else at,
    )


def clear_inertia(tx: Transaction, owner: str, conversation: str) -> None:
    """The conversation has no last project any more."""
    tx.run("DELETE FROM inertia WHERE owner = ? AND conversation = ?", owner, conversation)


def inertia(tx: Transaction, owner: str, conversation: str) -> tuple[str, int] | None:
    """(project, since when) of the conversation, None if it has none."""
    row = tx.one(
        "SELECT project, at FROM inertia WHERE owner = ? AND conversation = ?", owner, conversation
    )
    return (row["project"], row["at"]) if row else None


def newest_attributed(tx: Transaction, owner: str, conversation: str) -> tuple[str, int] | None:
    """(project, message time) of the conversation's newest message that has a target."""
    row = tx.one(
        "SELECT d.project, m.created FROM messages AS m CROSS JOIN decisions AS d "
        "ON d.message = m.id AND d.state IN ('TENTATIVE', 'COMMITTED') "
        "WHERE m.owner = ? AND m.conversation = ? AND m.raw = 0 ORDER BY m.seq DESC LIMIT 1",
        owner,
        conversation,
    )
    return (row["project"], row["created"]) if row else None


def recent_attributed(
    tx: Transaction, owner: str, conversation: str, limit: int
) -> list[tuple[str, str]]:
    """(project, text) of the conversation's last attributed messages, oldest first."""
    rows = tx.all(
        "SELECT d.project, substr(m.text, 1, 400) AS text FROM messages AS m "
        "CROSS JOIN decisions AS d ON d.message = m.id AND d.state IN ('TENTATIVE', 'COMMITTED') "
        "WHERE m.owner = ? AND m.conversation = ? AND m.raw = 0 ORDER BY m.seq DESC LIMIT ?",
        owner,
        conversation,
        limit,
    )
    return [(row["project"], row["text"]) for row in reversed(rows)]


def save_draft(
    tx: Transaction, owner: str, conversation: str, text: str, target: str | None
) -> None:
    """Keep what stands in the entry; an empty text removes the draft."""
    if not text:
        tx.run("DELETE FROM drafts WHERE owner = ? AND conversation = ?", owner, conversation)
        return
    tx.run(
        "INSERT INTO drafts (owner, conversation, text, target, updated) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (owner, conversation) DO UPDATE SET text = excluded.text, "
        "target = excluded.target, updated = excluded.updated",
        owner,
        conversation,
        text,
        target,
        tx.now,
    )


def draft(tx: Transaction, owner: str, conversation: str) -> tuple[str, str | None] | None:
    """(text, target) of the conversation's draft."""
    row = tx.one(
        "SELECT text, target FROM drafts WHERE owner = ? AND conversation = ?", owner, conversation
    )
    return (row["text"], row["target"]) if row else None
