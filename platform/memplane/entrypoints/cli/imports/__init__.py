"""How `memplane import` reads files and sends them."""
