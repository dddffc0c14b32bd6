"""Django settings. What an operator can choose comes from the environment, through `configuration.read`."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from django.utils.functional import lazy

from tito_project.addresses import broker_url, embedded_database_url, embedded_redis_url, orm_database
from tito_project.configuration import Configuration, read
from tito_project.embedded.places import places_of
from tito_project.env import Environment
from tito_project.exposure import default_allowed_hosts, refuse_open_bind
from tito_project.secret_files import stored_secret
from tito_project.version import VERSION

BASE_DIR = Path(__file__).resolve().parent.parent
_env = Environment(os.environ)

# Core

SECRET_KEY = _env.optional_text("SECRET_KEY")
DEBUG = _env.flag("DEBUG", False)
ALLOWED_HOSTS = list(_env.listing("ALLOWED_HOSTS", ""))
CSRF_TRUSTED_ORIGINS = list(_env.listing("CSRF_TRUSTED_ORIGINS", ""))
DATABASE_URL = _env.text("DATABASE_URL", "")
REDIS_URL = _env.text("REDIS_URL", "")

TITO: Configuration = read(_env)
refuse_open_bind(TITO)
if TITO.auth == "token" and TITO.admin_token is None:
    TITO = replace(TITO, admin_token=stored_secret(TITO.home / "admin-token", "TITO_ADMIN_TOKEN"))

# Read on first use: commands that sign nothing write nothing into TITO_HOME.
SECRET_KEY = SECRET_KEY or lazy(stored_secret, str)(TITO.home / "secret-key", "SECRET_KEY")
ALLOWED_HOSTS = ALLOWED_HOSTS or default_allowed_hosts(TITO.bind)

# Services: given by address, or embedded

EMBEDDED_POSTGRES = not DATABASE_URL
EMBEDDED_VALKEY = not REDIS_URL
DATABASE_URL = DATABASE_URL or embedded_database_url(places_of(TITO.home))
REDIS_URL = REDIS_URL or embedded_redis_url(places_of(TITO.home))
DATABASES = {"default": orm_database(DATABASE_URL, pool_size=8)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Applications

INSTALLED_APPS = [
    "unfold",
    "axes",
    "django.contrib.admin.apps.SimpleAdminConfig",  # urls.py loads the screens: few processes show any
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "sessions_app",
    "trainer_export",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "tito_project.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "tito_project.content_policy.ContentPolicyMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "tito_project.urls"
ASGI_APPLICATION = "tito_project.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
}

SPECTACULAR_SETTINGS = {
    "TITLE": "TITO",
    "DESCRIPTION": "Token-in/token-out session server",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
}

UNFOLD = {
    "SITE_TITLE": "TITO",
    "SITE_HEADER": "TITO",
    "SITE_SYMBOL": "account_tree",
    "SITE_FAVICONS": [{"rel": "icon", "href": "sessions_app.presentation.navigation.favicon"}],
    "SIDEBAR": {"navigation": "sessions_app.presentation.navigation.sidebar"},
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Signing in: so many failures of one name from one address, then a pause; counted in Postgres.

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
LOGIN_REDIRECT_URL = "admin:index"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# Behind a proxy that speaks TLS

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = TITO.behind_tls
SECURE_SSL_REDIRECT = TITO.behind_tls
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TITO.behind_tls else None
SECURE_HSTS_SECONDS = 31_536_000 if TITO.behind_tls else 0
# What other hosts of the domain do is not ours to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# Language, time, static files

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
FORMAT_MODULE_PATH = ["tito_project.formats"]

STATIC_URL = "/static/"
STATIC_ROOT = None
# Served from the applications' own folders: no collectstatic step, nothing written.
WHITENOISE_USE_FINDERS = True

# Tasks. The rows in Postgres are the truth, a message only says "look": a second delivery does no harm.

CELERY_BROKER_URL = broker_url(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 60,
    "unacked_restore_throttle": 1,
    "unacked_restore_interval": 2,
}
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BEAT_SCHEDULE: dict[str, dict[str, object]] = {
    "recover": {"task": "sessions_app.recover", "schedule": 60.0},
    "what-if-patrol": {"task": "sessions_app.what_if_patrol", "schedule": 30.0, "options": {"expires": 30}},
    "reap-idle": {"task": "trainer_export.reap_idle", "schedule": 30.0},
    "label-nodes": {"task": "trainer_export.label", "schedule": 15.0, "options": {"expires": 15}},
    "export-patrol": {"task": "trainer_export.patrol", "schedule": 15.0},
    "retention": {"task": "trainer_export.retire", "schedule": 3600.0},
    "forget-reads": {"task": "sessions_app.forget_reads", "schedule": 3600.0},
    "drift-audit": {
        "task": "sessions_app.drift_audit",
        "schedule": 300.0,
        "options": {"expires": 240},
    },
}
if TITO.export_every_s is not None:
    CELERY_BEAT_SCHEDULE["export"] = {"task": "trainer_export.periodic", "schedule": TITO.export_every_s}

# Logging: no conversation text above DEBUG, whatever DEBUG says about Django

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "tito_project.quiet_logs.QuietFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        },
        "json": {"()": "tito_project.json_logs.JsonFormatter"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": TITO.log_format}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "sessions_app": {"level": "INFO"},
        "sessions_app.turns.journal": {"level": "INFO" if TITO.log_format == "json" else "WARNING"},
        "trainer_export": {"level": "INFO"},
        "uvicorn": {"level": "INFO"},
        "uvicorn.access": {"level": "WARNING", "propagate": False},
        "celery": {"level": "INFO"},
        "tito_project": {"level": "INFO"},
        "django": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}
