"""What plots are made of: axes, colours, tables of cells, and what is drawn of a fit."""
