"""Requests, offers, election, schedules."""
