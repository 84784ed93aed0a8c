"""Where functions start: what tables say, and what the code itself tells where they are silent."""
