"""The data boundary: frames of every library, columns, dtypes and the schema."""
