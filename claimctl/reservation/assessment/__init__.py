"""What should be done with a claim: keep its holds, or release it."""
