"""The soak: clients over HTTP while a logical partition grows and shrinks under them."""
