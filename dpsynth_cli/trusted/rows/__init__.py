"""Files to codes: total functions of one cell, whatever is in it.

read         which format a path means
csv          CSV, gzip, pipes; csv_stream: bytes to lines; csv_lines: lines to cells, one a record
parquet      files and folders; parquet_form, parquet_pages: what a file says of itself; parquet_plan: how
             its text is read
scan         pieces that can be passed over again
csv_encoding bytes in another encoding than UTF-8
text         cells of text by one grammar; formatted: by a declared format
values       by the declared type; encode: to codes
header       the first line of a CSV file; forms, form_formats: what cells look like; look: both, for a draft
public_table ends and labels of a table that is public already
unit_marks   whose a row is, under a secret key; unit_rows: at most so many of each; unit_sizes: how many
unit_runs    rows of a unit in the order of time; kept_rows: codes in a temporary file
label_counts how many rows, or units, have each label of a column whose labels nobody has listed
sample       rows kept for the steward's figures
problems     cells that are not as declared; counts: of one column; problem_forms: how they look
"""
