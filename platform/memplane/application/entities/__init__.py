"""Who and what memories mention."""
