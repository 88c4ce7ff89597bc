"""Loading files of items: CSV or JSON Lines, checked line by line, written in batches, resumable."""
