"""How work runs in one process: threads, time limits, memory, progress, files written whole."""
