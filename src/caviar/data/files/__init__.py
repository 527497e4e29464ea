"""Files that tables are read from, and what is copied of them."""
