"""The core of Isola: attribution, isolation, correction, memory. No terminals, no agents."""

__version__ = "0.1.0"
