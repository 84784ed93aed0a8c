"""Tables and figures as text and pictures."""
