"""The command line: parse, call, print. Nothing else happens here.

Every command has a module of its own name, which begins with the command and its options. These
modules import what they need when the command is called, so that help is instant; ``app`` only
registers them. Modules of other names hold what a command needs beside that, and may import
anything.
"""
