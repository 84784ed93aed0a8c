"""SimHash of functions, with learned weights."""
