"""The front ends: the terminal program and the commands."""
