"""The vocabulary and the tokenizer directory: bands, lock, decisions, seeds, training and its readable reference."""
