"""Application configuration."""

from django.apps import AppConfig


class TrainerExportConfig(AppConfig):
    """Registers `trainer_export` with Django."""

    name = "trainer_export"
    verbose_name = "Trainer export"
