"""Admission control: policies in CEL and webhooks change or refuse writes."""
