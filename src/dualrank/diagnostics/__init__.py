"""Can this log be trusted, and for what?"""
