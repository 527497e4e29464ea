"""Components of mixtures: their centres, scales and densities."""
