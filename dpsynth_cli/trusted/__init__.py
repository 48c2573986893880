"""ALL that may name a row. README.md: the claim, its proof, and who may import which room."""
