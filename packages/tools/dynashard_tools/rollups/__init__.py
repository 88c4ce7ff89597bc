"""`dynashard rollups`: compare roll-ups with the items, and mend them."""
