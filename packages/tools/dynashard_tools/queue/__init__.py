"""`dynashard queue`: what waits on the queues, what could not be done, and how it is tried again."""
