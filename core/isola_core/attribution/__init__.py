"""From a message to a project."""
