"""The result of an explanation, and how any method makes one."""
