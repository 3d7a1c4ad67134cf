"""Bodies that a server refuses, each with the answer of a real one."""
