"""All that is stored of an account: written into a file, or removed."""
