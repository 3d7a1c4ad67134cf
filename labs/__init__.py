"""Programs that prove, compare or measure. ``python -m labs`` lists them."""
