"""scikit-learn's own tests of mixtures and topics, from its wheel, with our classes in the place of its own."""
