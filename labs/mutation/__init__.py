"""Random small changes of claimctl's code, and the tests that notice them."""
