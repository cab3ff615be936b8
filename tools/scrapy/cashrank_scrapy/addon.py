"""Puts the extension and the scheduler into a spider's settings."""


class Addon:
    """``ADDONS = {"cashrank_scrapy.Addon": 500}``"""

    def update_settings(self, settings):
        extensions = settings.getdict("EXTENSIONS")
        extensions.setdefault("cashrank_scrapy.Extension", 500)
        settings.set("EXTENSIONS", extensions, "addon")
        settings.set("SCHEDULER", "cashrank_scrapy.Scheduler", "addon")
