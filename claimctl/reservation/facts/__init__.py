"""What a decision is made from, and what it may write."""
