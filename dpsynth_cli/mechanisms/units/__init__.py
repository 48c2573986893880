"""Units in a synthetic table: whose rows belong together, where a person has several.

sizes       how many rows a unit has, by its own columns: asked, cleared of noise, made to agree
grouping    rows of a model put together as units of those sizes
restored    the model with units
"""
