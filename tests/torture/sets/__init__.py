"""The data sets, by what is wrong with them."""
