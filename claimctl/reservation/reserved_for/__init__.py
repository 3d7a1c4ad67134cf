"""The list of a claim (``status.reservedFor``): its entries, who wrote them, what it should be."""
