"""Units in a synthetic table: whose rows belong together, where a person has several.

sizes       how many rows a unit has, by its own columns: asked, cleared of noise, made to agree
grouping    rows of a model put together as units of those sizes
restored    the model with units
links       pairs of rows that follow one another in time: asked, cleared of noise
heads       rows that units begin with        pool, paths   rows that come after them, one by one
fitting     weights by which they are chosen
panels      the model with units whose rows follow one another
"""
