"""Reports of experiments: tables, figures, files and the page of all."""
