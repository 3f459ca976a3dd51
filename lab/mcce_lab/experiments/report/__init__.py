"""Reports of experiments: tables, figures, files and the page that joins them."""
