"""What is kept, and who sees it."""
