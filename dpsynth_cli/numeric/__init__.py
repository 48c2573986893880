"""Pure functions of arrays: no privacy, no spec, no files."""
