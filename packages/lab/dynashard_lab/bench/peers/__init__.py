"""Programs that do what a part of Dynashard does, as one would write them on the usual packages."""
