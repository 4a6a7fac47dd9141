"""The plan viewer: a loopback server that shows `topos.plan/1` documents as a page."""
