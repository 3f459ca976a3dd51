"""A report as one HTML file: the run, and everybody in it. Jinja2 is imported on first use."""
