"""Engines and an object store on this machine alone: fetched, started, waited for and stopped, on 127.0.0.1."""
