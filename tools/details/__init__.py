"""Looking after the detached fields of items."""
