"""Who a request is from, what they may do, and the reviews that tell."""
