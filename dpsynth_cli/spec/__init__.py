"""The YAML document that says what to release.

spec         all sections, read and written
reader       one section key by key; columns, mechanism, evaluate: their sections
source       the file and the command line's overrides; yaml_nodes: a tree with line marks
schema       the JSON Schema for editors
"""
