"""Reports as one page of HTML that can be read, sorted and looked at without a network."""
