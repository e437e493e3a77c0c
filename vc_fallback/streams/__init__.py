"""One connection to a node's event stream, read until it ends; imported by heads and topics."""
