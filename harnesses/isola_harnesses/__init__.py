"""Adapters to agents and model endpoints, behind the ports of `isola_core`."""
