"""The routes: parse a contract, call one use case, render."""
