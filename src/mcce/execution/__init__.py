"""How work runs (in threads; distributed engines come later) and how its progress is shown."""
