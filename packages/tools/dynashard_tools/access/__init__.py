"""`dynashard access`: who may do what, by the rules that the domain declares."""
