"""Django settings. Every variable is listed with its default in the README. Importing this starts nothing."""

import sys
from pathlib import Path

from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy

from maxclaw import embedded_paths
from maxclaw.admin_theme import UNFOLD as ADMIN_THEME
from maxclaw.configuration import ENVIRONMENT as env
from maxclaw.configuration import ConfigurationError, database_settings, exit_with
from maxclaw.logs import logging_settings

BASE_DIR = Path(__file__).resolve().parent.parent
TESTING = "pytest" in sys.modules


# Database work in the ASGI process runs on this many threads, and its pool is of the same size.
DATABASE_THREADS = 16

try:
    DATA_DIR = env.path("MAXCLAW_DATA_DIR", BASE_DIR / "var")
    ROLE = env.choice("MAXCLAW_ROLE", "command", {"command", "web", "worker"})
    DATABASE_EMBEDDED = not env.text("DATABASE_URL")
    database_url = env.text("DATABASE_URL") or embedded_paths.database_url(DATA_DIR)
    DATABASES = {"default": database_settings(database_url)}
    DATABASE_LISTEN_URL = env.text("DATABASE_LISTEN_URL")
    if DATABASE_LISTEN_URL:
        database_settings(DATABASE_LISTEN_URL, "DATABASE_LISTEN_URL")
    HOST = env.text("MAXCLAW_HOST", "127.0.0.1")
    PORT = env.number("MAXCLAW_PORT", 8000, minimum=1, maximum=65_535)
    ADMIN_PASSWORD = env.text("MAXCLAW_ADMIN_PASSWORD")
    ANTHROPIC_API_KEY = env.text("ANTHROPIC_API_KEY")
    ANTHROPIC_BASE_URL = env.url("ANTHROPIC_BASE_URL")
    MAXCLAW_MODEL = env.text("MAXCLAW_MODEL")
    MAXCLAW_CATALOG = env.text("MAXCLAW_CATALOG")
    if ANTHROPIC_BASE_URL and not MAXCLAW_MODEL and not MAXCLAW_CATALOG:
        raise ConfigurationError("MAXCLAW_MODEL must name the model that the server at ANTHROPIC_BASE_URL offers.")
    EMULATOR_URL = env.url("MAXCLAW_EMULATOR_URL")
    EMULATOR_PACE = env.choice("MAXCLAW_EMULATOR_PACE", "realistic", {"instant", "realistic"})
    SECRET_KEY = env.text("MAXCLAW_SECRET_KEY") or embedded_paths.secret_key(DATA_DIR)
    DEBUG = env.flag("MAXCLAW_DEBUG", False)
    ALLOWED_HOSTS = env.words("MAXCLAW_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
    CSRF_TRUSTED_ORIGINS = env.words("MAXCLAW_TRUSTED_ORIGINS", [])
    EMBED_ORIGINS = env.origins("MAXCLAW_EMBED_ORIGINS")
    HTTPS = env.flag("MAXCLAW_HTTPS", False)
    MESSAGE_MAX_CHARS = env.number("MAXCLAW_MESSAGE_MAX_CHARS", 200_000, minimum=1)
    # Above the chat's own limit, `chat.frames.FRAME_MAX_BYTES`: a frame that is too long gets a sentence first.
    SOCKET_MAX_BYTES = 4 * 1024**2
    IMPORT_MAX_BYTES = env.number("MAXCLAW_IMPORT_MAX_MB", 1_024, minimum=1) * 1024**2
    STEP_LIMIT = env.number("MAXCLAW_STEP_LIMIT", 40, minimum=1)
    LEASE_SECONDS = env.number("MAXCLAW_LEASE_SECONDS", 30, minimum=1)
    LEASE_RENEW_SECONDS = env.number("MAXCLAW_LEASE_RENEW_SECONDS", 10, minimum=1)
    if LEASE_RENEW_SECONDS * 2 > LEASE_SECONDS:
        raise ConfigurationError(
            "MAXCLAW_LEASE_RENEW_SECONDS must be at most half of MAXCLAW_LEASE_SECONDS, or living turns are swept."
        )
    POLL_SECONDS = env.number("MAXCLAW_POLL_SECONDS", 10, minimum=1)
    MODEL_STALL_SECONDS = env.number("MAXCLAW_MODEL_STALL_SECONDS", 120, minimum=1)
    MODEL_RETRIES = env.number("MAXCLAW_MODEL_RETRIES", 2)
    MODEL_RETRY_BASE_SECONDS = env.fraction("MAXCLAW_MODEL_RETRY_BASE_SECONDS", 0.5)
    EMBEDDING_URL = env.url("MAXCLAW_EMBEDDING_URL")
    EMBEDDING_MODEL = env.text("MAXCLAW_EMBEDDING_MODEL")
    EMBEDDING_API_KEY = env.text("MAXCLAW_EMBEDDING_API_KEY")
    EMBEDDING_RECALL_THRESHOLD = env.fraction("MAXCLAW_EMBEDDING_RECALL_THRESHOLD", -1.0, minimum=-1.0)
    EMBEDDING_BRIEFING_THRESHOLD = env.fraction("MAXCLAW_EMBEDDING_BRIEFING_THRESHOLD", -1.0, minimum=-1.0)
    EMBEDDING_READS = env.words("MAXCLAW_EMBEDDING_READS", [])
    if EMBEDDING_URL:
        # Cosines of different models are not comparable, so nothing can stand in for these.
        for name in ("MODEL", "RECALL_THRESHOLD", "BRIEFING_THRESHOLD"):
            if not env.text(f"MAXCLAW_EMBEDDING_{name}"):
                raise ConfigurationError(
                    f"MAXCLAW_EMBEDDING_{name} must be set where MAXCLAW_EMBEDDING_URL names an embedding server."
                )
    MEMORY_ANSWER = env.choice("MAXCLAW_MEMORY_ANSWER", "list", {"list", "synthesize"})
    MEMORY_WRITER = env.choice("MAXCLAW_MEMORY_WRITER", "steward", {"steward", "shadow"})
    BUDGET_USER_TOKENS = env.number("MAXCLAW_BUDGET_USER_TOKENS", 2_000_000)
    BUDGET_USER_DOLLARS = env.fraction("MAXCLAW_BUDGET_USER_DOLLARS", 2.0)
    BUDGET_SERVER_TOKENS = env.number("MAXCLAW_BUDGET_SERVER_TOKENS", 20_000_000)
    BUDGET_SERVER_DOLLARS = env.fraction("MAXCLAW_BUDGET_SERVER_DOLLARS", 20.0)
    TIME_ZONE = env.time_zone("MAXCLAW_TIME_ZONE", "UTC")
    LANGUAGE_CODE = env.choice("MAXCLAW_LANGUAGE", "en", {"en", "zh-hans"})
    LOG_FORMAT = env.choice("MAXCLAW_LOG_FORMAT", "console", {"console", "json"})
    LOG_LEVEL = env.choice("MAXCLAW_LOG_LEVEL", "INFO", {"DEBUG", "INFO", "WARNING", "ERROR"})
except ConfigurationError as error:
    exit_with(error)

# The pool lives in the web role only: it does not survive the queue cluster's fork.
if ROLE == "web":
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 2, "max_size": DATABASE_THREADS, "timeout": 30}
DATABASES["default"] |= {
    "CONN_MAX_AGE": 0,
    "DISABLE_SERVER_SIDE_CURSORS": True,
    "TEST": {"SERIALIZE": False},
}

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "maxclaw.admin_app.MaxclawAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "channels",
    "rest_framework",
    "rest_framework.authtoken",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "axes",
    "csp",
    "maxclaw",
    "accounts",
    "llm",
    "threads",
    "agent",
    "quotes",
    "memory",
    "shadow",
    "chat",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "maxclaw.static_files.StaticFilesMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.middleware.PreferencesMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "maxclaw.request_log.RequestLogMiddleware",
    "axes.middleware.AxesMiddleware",
]

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
if TESTING:
    # Strong hashing takes half a second for each person that a test makes.
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "chat"
LOGOUT_REDIRECT_URL = "login"
AXES_HANDLER = "accounts.throttling.SignInThrottle"
AXES_FAILURE_LIMIT = 8  # of one name from one address; the other limits stand with the handler
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address", "username"]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_CALLABLE = "chat.pages.locked_out"

ROOT_URLCONF = "maxclaw.urls"
ASGI_APPLICATION = "maxclaw.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

UNFOLD = ADMIN_THEME

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

CHANNEL_LAYERS = {"default": {"BACKEND": "chat.layer.NotifyChannelLayer"}}

Q_CLUSTER = {
    # Tick and executor only: claims, attempts and leases are rows of ours. With one task prefetched for each
    # worker, retry must exceed timeout * (1 + (queue_limit + 1) / workers), or a slow task is delivered
    # twice.
    "name": "maxclaw",
    "orm": "default",
    "workers": 2,
    "queue_limit": 1,
    "bulk": 1,
    "timeout": 900,
    "retry": 2400,
    "ack_failures": True,
    "max_attempts": 1,
    "catch_up": False,
    "poll": 0.2,
    "recycle": 200,
    "max_rss": 700_000,
    "save_limit": 1000,
    "label": gettext_lazy("Background queue"),
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.TokenAuthentication",
    ],
    # JSON for browsers too: the framework's own pages need inline styles, and a screen reader stumbles over them.
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "chat.api_errors.told",
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": "600/minute"},
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "MaxClaw",
    "DESCRIPTION": "Conversations with an agent on a server of one's own.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    # A link to each operation would stand inside the button that unfolds it.
    "SWAGGER_UI_SETTINGS": {"deepLinking": False, "persistAuthorization": False},
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

USE_TZ = True
USE_I18N = True
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "maxclaw.formats"

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if TESTING or DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = TESTING or DEBUG

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}
X_FRAME_OPTIONS = "DENY"
# A page in a frame of another site is signed in only with cookies that go there, which browsers take over TLS alone.
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "None" if EMBED_ORIGINS and HTTPS else "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = False
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
DATA_UPLOAD_MAX_MEMORY_SIZE = 4_000_000

LOGGING = logging_settings(LOG_FORMAT, LOG_LEVEL)
