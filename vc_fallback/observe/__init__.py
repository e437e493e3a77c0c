"""Observers of signals: JSON lines, plain lines, logs; leaves that only the command imports."""
