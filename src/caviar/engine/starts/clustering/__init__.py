"""Clusters of points: k-means, agglomeration, partitions of several sizes."""
