"""The use cases; each opens one transaction."""
