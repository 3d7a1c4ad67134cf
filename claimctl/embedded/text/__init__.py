"""How names, quantities, selectors and other values are written, and what is wrong with them."""
