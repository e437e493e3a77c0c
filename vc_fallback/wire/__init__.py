"""HTTP/1.1 connections, TLS, dialling, server-sent events and the httpx seam; knows no Beacon words; imported by node and heads."""
