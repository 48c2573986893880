"""One published algorithm a file: post-processing of what `ask` answered."""
