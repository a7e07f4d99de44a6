"""The one source of truth; nothing above it talks SQL."""
