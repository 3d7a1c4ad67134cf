"""The promises under fire: chance, and everything that can go wrong, judged by a witness."""
