"""The service on HTTP: requests, what stands before them, and the model that answers."""
