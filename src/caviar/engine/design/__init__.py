"""The known statistics of rows, and the two products with them."""
