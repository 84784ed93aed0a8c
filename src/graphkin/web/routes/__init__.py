"""The API, one file for each thing that it is about."""
