"""Claims checked against answers that were not computed by the library."""
