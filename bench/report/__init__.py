"""What was found, for a person: a table, a page with plots."""
