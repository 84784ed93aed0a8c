"""Programs written in Go, which keep a table of all their functions even when stripped."""
