"""Where work runs and how its progress is shown."""
