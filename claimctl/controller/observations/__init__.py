"""What only this process knows, measured on its own clock: noted whether it leads or not."""
