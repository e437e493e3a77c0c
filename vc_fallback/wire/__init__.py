"""HTTP/1.1 connections, TLS, dialling, server-sent events, the httpx seam; no Beacon words; for node and heads."""
