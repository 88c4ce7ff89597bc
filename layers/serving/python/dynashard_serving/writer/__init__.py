"""The writer: does what lies on the queues, at least once each time and with the effect of once."""
