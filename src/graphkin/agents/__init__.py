"""Tools for agents: what graphkin can do, over the Model Context Protocol."""
