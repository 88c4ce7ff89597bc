"""`dynashard export`: a day's, a month's or all items of an entity into a file."""
