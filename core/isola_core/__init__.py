"""The core of Isola: attribution, isolation, correction, memory. Knows nothing of terminals or agents."""

__version__ = "0.1.0"
