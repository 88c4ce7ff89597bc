"""Generated readers and writers of stored items."""
