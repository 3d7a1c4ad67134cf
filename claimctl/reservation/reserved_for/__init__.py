"""The list of a claim (``status.reservedFor``): its entries, their writers, the desired list."""
