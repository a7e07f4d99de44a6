"""Tests of the claude harness against a scripted program that speaks its protocol."""
