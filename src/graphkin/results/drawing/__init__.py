"""Pictures: control flow, attention, reliability."""
