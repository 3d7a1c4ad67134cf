"""The controllers of Endpoints and EndpointSlices: they follow the pods of Services."""
