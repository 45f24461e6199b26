"""Configuration: typed run configurations, profiles, and the data files of the vocabulary and the platform rules."""
