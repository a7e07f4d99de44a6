"""Tests against the real agent CLIs, on loopback alone (scripts/real-cli-tests)."""
