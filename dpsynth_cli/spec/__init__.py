"""The YAML document that says what to release.

spec         a Spec, read from a file or from a recorded document
document     the keys of the whole document; privacy, mechanism, columns, evaluate, paths: those of its parts
keys         what a key is: declared once for reader, effective document, JSON Schema and docs
column_formats, column_checks, patterns: formats and grids of columns; those declared together
kinds        what a key may hold: numbers, words, lines of text; column_kinds: bounds and categories
reader       reads what is declared, and says what is wrong
source       the file and the command line's overrides; yaml_nodes: a tree with line marks
schema       the JSON Schema for editors
"""
