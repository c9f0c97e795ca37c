"""How much a caller may send, store and occupy; and requests that are sent twice."""
