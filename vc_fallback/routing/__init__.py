"""The five ways to send a request, over any operation; above node and beside heads, imported by the facade."""
