"""``claimctl doctor driver``: what a DRA driver does with held and shared claims."""
