"""Empirical privacy audits: many small releases of neighbouring tables, and what tells them apart."""
