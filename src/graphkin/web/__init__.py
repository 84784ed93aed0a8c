"""The page and the JSON API of ``graphkin serve``."""
