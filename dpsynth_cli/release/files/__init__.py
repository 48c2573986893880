"""From codes to files under their final names.

write        codes to declared types, and those to CSV or Parquet, in batches
computed     columns that follow from others      filled       keys and constants
csv_text     lines of CSV in the declared format  frame        a synthetic file as a data frame
publish      names of a release's files, and all of them in place together
replaced     an output that is there already is never lost
"""
