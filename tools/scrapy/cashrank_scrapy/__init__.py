"""Crawl the important pages first: Scrapy with cashrank's strategies. See README.md."""

from .addon import Addon
from .extension import Extension
from .scheduler import Scheduler

__all__ = ["Addon", "Extension", "Scheduler"]
