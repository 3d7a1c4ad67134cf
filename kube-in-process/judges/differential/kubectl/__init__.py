"""What kubectl asks a server, command by command, and what a real one answers."""
