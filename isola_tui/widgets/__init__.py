"""Widgets of the terminal program, one thing each."""
