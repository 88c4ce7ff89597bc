"""Points the functions of a deployed environment at the versions of an earlier release."""
