"""What only this process knows, by its own clock. It is noted whether this process leads or not."""
