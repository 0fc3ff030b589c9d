"""The command line: parse, call, print. Nothing else happens here."""
