"""What a function says, as data: its operations, constants, strings, imports and callees."""
