"""What people and programs see of results: tables, JSON Lines, CSV, SARIF and HTML pages."""
