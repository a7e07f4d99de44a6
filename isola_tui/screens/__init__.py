"""Screens of the terminal program."""
