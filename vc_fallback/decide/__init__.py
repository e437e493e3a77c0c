"""Pure decisions over facts, without I/O, taking `now` as an argument; imported by the shells above."""
