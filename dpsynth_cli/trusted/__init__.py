"""All code that may name a row."""
