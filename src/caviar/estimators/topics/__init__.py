"""What an estimator of topics states, its passes, words and documents."""
