"""How decisions, cards, panels and panes look: pure functions over a `Presentation`."""
