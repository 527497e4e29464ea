"""What the rows bring: their known statistics, and the two products with them."""
