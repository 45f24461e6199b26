"""What other distributions give a run: filters and readers, and how they are found."""
