"""`dynashard copies`: compares copies with their sources, and mends them."""
