"""Looking after the attachments of items."""
