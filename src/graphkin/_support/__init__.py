"""What lies below everything, and knows no word of graphs: files, settings, progress."""
