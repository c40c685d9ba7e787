"""The shapes of secrets, a kind each.

Every run of signs that something has to follow is bounded, so that no text, however made, is slow to look through.
"""

import re

# Letters and digits mixed, as made by a machine: at least one digit, and no blank.
_MADE = r"(?=[\w.~+/=-]{0,300}\d)[\w.~+/=-]"
# What Markdown and quoting put around a name or a value: "**API key:** `8f3a…`".
_MARKS = r"[`*_\"'“「(]{0,3}"
_IS = rf"{_MARKS}\s{{0,3}}(?:=|:|：|是|为|\bis\b){_MARKS}\s{{0,3}}{_MARKS}(?:\[redacted\])?"
# A password's own quotation marks say how far it goes.
_UNQUOTED_MARKS = r"[`*_“「(]{0,3}+"
_HAS_VALUE = r"(?![`*_\"'“”「」()]{1,20}(?:\s|\Z))"

# Words and short numbers between strokes, which people write: report-2024-final-v2.
_WORDS = r"(?:[a-zA-Z]{1,15}|v?\d{1,4})(?:[-_](?:[a-zA-Z]{1,15}|v?\d{1,4})){2,12}(?![\w.~+/=-])"
# Base64, which is of whole fours, with a capital after another sign.
_BASE64 = (
    r"(?-i:(?=[\w+/]{0,200}[a-z0-9][A-Z])(?:[A-Za-z0-9+/]{4}){2,400}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
    r"(?![\w+/=]))"
)

_PRIVATE_KEY = re.compile(
    r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}.*?"
    r"(?:-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|\Z)"
    r"|\bPrivate-Lines:\s{0,3}\d{1,4}\b.*?(?:\bPrivate-(?:MAC|Hash):[^\n]{0,200}|\Z)",
    re.DOTALL | re.IGNORECASE,
)

# What a machine gave an address of its own: a UUID, or letters and digits without a break.
_UNGUESSABLE = (
    r"(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?=[a-z]{0,60}\d)[a-z0-9]{16,}|[a-z0-9]{26,})"
    r"(?=[\s?#/\"'<>)\]，。；,;.]|\Z)"
)
_WEBHOOK = re.compile(
    r"(?i)https?://(?:hooks\.slack\.com/(?:services|workflows|triggers)/"
    r"|(?:\w{1,30}\.)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/"
    r"|[\w.-]{0,80}webhook\.office\.com/|outlook\.office(?:365)?\.com/webhook/|hooks\.zapier\.com/hooks/"
    r"|hook\.(?:\w{1,10}\.)?make\.com/|hook\.integromat\.com/|maker\.ifttt\.com/trigger/|api\.telegram\.org/bot\d"
    r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/|oapi\.dingtalk\.com/robot/send"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/|chat\.googleapis\.com/v1/spaces/"
    r"|events\.pagerduty\.com/integration/|hc-ping\.com/(?=[\w-]{16})|webhook\.site/(?=[\w-]{16})"
    rf"|[^\s/]{{1,100}}/(?:[^\s?#/]{{1,60}}/){{0,4}}(?:web)?hooks?/(?:[\w-]{{1,40}}/){{0,2}}{_UNGUESSABLE})"
    r"(?:\[redacted\]|[^\s\"'<>)\]，。；])*"
)

# To the last @ before white space, so that a password with / or @ goes whole.
_NAME, _PASSWORD, _HOST = r"[^/\s:@\"'<>]{0,100}", r"[^\s\"'<>]{1,500}", r"(?=@[\w\[.-])"
_WEB = r"(?:(?<=http://)|(?<=https://)|(?<=ws://)|(?<=wss://))"
_URL_PASSWORD = re.compile(
    # A port follows a host, not a name.
    rf"(?<=://){_NAME}:(?!\d{{1,5}}[/?#]){_PASSWORD}{_HOST}"
    # Digits and a slash may begin a password too: of no page, behind a name that is no host's.
    rf"|(?<=://)(?!{_WEB})(?!localhost:)[^/\s:@\"'<>.\[]{{0,100}}:\d{{1,5}}/[^\s\"'<>?#]{{0,200}}{_HOST}"
    r"|(?<=://)[0-9a-fA-F]{32}(?::[0-9a-fA-F]{32})?(?=@)"
    # Data source names of drivers that write no scheme.
    rf"|(?<![\w/:.-])[\w.-]{{1,60}}:{_PASSWORD}(?=@(?:tcp|udp|unix)\d?\()"
    r"|(?<![\w/.-])[\w.$#-]{1,60}/[^\s/@\"'<>]{1,100}(?=@//[\w\[])"
    r"|(?i:(?<=jdbc:oracle:thin:))[\w.$#-]{1,60}/[^\s/@\"'<>]{1,100}(?=@)"
)

_COMMAND_PASSWORD = re.compile(
    r"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{1,3}[\"']?[\w.@-]{1,80}:(?=[^\s\"']{0,100}[\d!#$%^&*])[^\s\"':/]{6,}"
)

_NO_WORD = r"none|null|required|optional|string|text|unknown|forgotten|changed|reset|stored|hidden|missing"
_PASSWORDS = r"(?:password|passwd|passphrase|pwd|passwort|kennwort|mot de passe|contraseña)"
_NAMED_PASSWORD = re.compile(
    # A name may have more before it, as in DB_PASSWORD and PGPASSWORD, and a key its quotation marks.
    rf"(?i)(?:(?<![\w-])\w{{0,60}}{_PASSWORDS}{_MARKS}\s{{0,3}}=\s{{0,3}}{_UNQUOTED_MARKS}(?!(?:true|false|none|null)\b){_HAS_VALUE}"
    rf"|(?<![\w-])\w{{0,60}}{_PASSWORDS}{_MARKS}\s{{0,3}}:{_UNQUOTED_MARKS}\s{{0,3}}"
    rf"(?=([\"'])(?!(?:{_NO_WORD})[\"'])[^\"'\n]{{4,200}}\1)"
    rf"|(?<![\w-])\w{{0,60}}(?:{_PASSWORDS}|\bpw)(?:{_MARKS}\s{{0,3}}:|{_MARKS}\s{{1,3}}is\b|['’]s\b)"
    rf"{_UNQUOTED_MARKS}\s{{0,3}}{_UNQUOTED_MARKS}{_HAS_VALUE}(?!1password\b)"
    rf"(?!(?:{_NO_WORD})[`*_.!]{{0,4}}(?:[\s,;]|\Z))"
    r"(?=[^\s,;]{0,200}[\d!@#$%^&*_])"
    # A word that stands alone behind it is one; words that go on are a sentence.
    rf"|(?<![\w-]){_PASSWORDS}{_MARKS}\s{{0,3}}[:：]{_UNQUOTED_MARKS}\s{{0,3}}{_UNQUOTED_MARKS}"
    rf"(?!(?:{_NO_WORD})\b)(?=[\w-]{{4,100}}[`*_.,;]{{0,4}}\s{{0,20}}(?:\n|\Z))"
    rf"|(?:密码|口令){_MARKS}\s{{0,3}}(?:是|为|=|:|：){_UNQUOTED_MARKS}\s{{0,3}}{_UNQUOTED_MARKS}{_HAS_VALUE}"
    r"(?=[\x21-\x7e]{4}))"
    r"(?:\"[^\"\n]{1,300}\"|'[^'\n]{1,300}'|\{[^}\n]{1,300}\}|[^\s,;，。；]+)"
)

_COOKIE = re.compile(
    r"(?i)(?<![\w-])(?:set-)?cookie[\"']?\s{0,3}:\s{0,3}[\"']?[^\s=;,]{1,100}=[^\r\n]*"
    r"|(?<![\w.-])(?:[\w.-]{0,60}[_.-])?(?:(?:sess(?:ion)?(?:[_-]?(?:id|token))?|sid|(?:csrf|xsrf)[_-]?token|phpsessid"
    r"|jsessionid|auth_?cookie|remember_token|auth_token|li_at|aspnetcore\.[\w.]{1,40})[\"']?\s{0,3}=|session[_-]?(?:id|token)[\"']?\s{0,3}:)"
    r"\s{0,3}[\"']?(?=[^\s;\"']{0,200}\d)[^\s;,\"']{8,}"
    r"|(?<![\w-])(?:-b|--cookie)[ =]{1,3}[\"']?[\w.-]{1,60}=[^\s\"']{6,}[^\"'\r\n]{0,4000}"
)

_BEARER = re.compile(
    rf"(?i)(?<![\w-])(?:bearer(?:\s{{1,3}}token)?(?:{_MARKS}\s{{1,3}}|{_MARKS}\s?[:=]{_MARKS}\s?|%20){_MARKS}(?:\[redacted\])?"
    rf"(?!{_WORDS})(?:{_MADE}{{10,}}|[\w.~+/=-]{{20,}})"
    r"|authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:digest\s{1,3}[^\r\n]{6,}"
    rf"|basic(?:\s{{1,3}}|%20){_BASE64}"
    r"|(?:basic|bearer|token|apikey|negotiate)(?:\s{1,3}|%20)(?=\S{0,200}\d|\S{16})\S{6,})"
    rf"|basic\s{{1,3}}(?=[a-z0-9+/]{{0,200}}\d)(?=[a-z0-9+/=]{{12}}){_BASE64})"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
)

# Keys that say by how they begin whose they are.
_ISSUED = "|".join(
    (
        r"(?<![\w-])(?:sk|pk|rk)[-_](?=[\w-]{0,200}\d)(?![a-z]{1,20}[-_]?\d{4}[-_])"
        rf"(?!{_WORDS})[\w-]{{12,}}",
        rf"\bsk-(?!{_WORDS})[\w-]{{16,}}",
        r"\b(?:sk|pk|rk)_(?:live|test)_\w{10,}|\bwhsec_[\w+/=-]{10,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}|\bya29\.[\w-]{20,}|\b1//0[\w-]{20,}",
        r"\b(?:ghp|gho|ghu|ghs|ghr)_\w{16,}|\bgithub_pat_\w{20,}|\bgl(?:pat|rt|dt|ptt|soat|cbt|ft)-[\w-]{16,}",
        r"\bxox[abeprs]-[\w-]{10,}|\bxapp-\d-[\w-]{10,}|\bdckr_pat_[\w-]{16,}|\bnpm_[A-Za-z0-9]{20,}|\bpypi-(?=[\w-]{0,200}[\dA-Z])[\w-]{16,}",
        r"\bgsk_[A-Za-z0-9]{10,}|\bhf_[A-Za-z0-9]{10,}|\br8_[A-Za-z0-9]{20,}|\bxai-\w{10,}|\bnvapi-[\w-]{20,}",
        r"\bpplx-[A-Za-z0-9]{20,}|\btvly-[\w-]{16,}|\blin_api_\w{20,}|\bsecret_[A-Za-z0-9]{32,}|\bntn_[A-Za-z0-9]{20,}",
        r"\bfigd_[\w-]{20,}|\bsq0(?:atp|csp)-[\w-]{16,}|\bdapi[0-9a-f]{32}\b|\bph[cx]_[A-Za-z0-9]{30,}",
        r"\bsntry[su]_[\w+/=-]{12,}|\batlasv1\.[\w-]{20,}|\bhv[sb]\.[\w-]{20,}|\bdo[opr]_v1_\w{20,}",
        r"\bshp(?:at|ss|ca)_\w{20,}|\bEAA(?=[A-Za-z0-9]{0,60}\d)[A-Za-z0-9]{24,}|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
        r"\bSG\.[\w-]{12,}\.[\w-]{12,}|\bkey-[0-9a-f]{32}\b|\bAC[0-9a-f]{32}:[0-9a-f]{32}\b|\b\d{8,10}:AA[\w-]{30,}",
    )
)
_API_KEY = re.compile(
    rf"{_ISSUED}"
    rf"|(?i:(?<![a-z])x-api-key{_MARKS}\s{{0,3}}:{_MARKS}\s{{0,3}}{_MARKS}[\w.~+/=-]{{10,}})"
    r"|(?i:(?<![a-z])(?:api|(?:shared)?access|secret|account|auth|client|private|refresh|signing|encryption)[-_ ]?"
    rf"(?:access[-_ ]?)?(?:key|token|secret)(?:[-_ ]?id)?{_IS}"
    rf"(?![a-z]{{1,15}}(?:_[a-z]{{1,15}}){{1,4}}_\d{{1,6}}(?!\w)){_MADE}{{8,}})"
    rf"|(?:密钥|秘钥|令牌){_IS}(?=[\x21-\x7e]{{0,200}}\d)[\x21-\x7e]{{8,}}"
    # A word of its own kind before what a machine made: "my token is 8f3a…", "SECRET=8f3a…". Words of a name between
    # strokes were made by nobody's machine: "sort key: created_at_2023".
    rf"|(?i:(?:(?<![a-z_])key|(?<![a-z])(?:token|secret)){_IS}(?=[\w.~+/=-]{{0,300}}[a-z])(?![\w-]{{0,40}}://)"
    rf"(?![a-z]+_[a-z]+_){_MADE}{{16,}})"
    r"|(?i:(?<=[?&])(?:key|token|secret|sig|signature|access_token|api_key|apikey|auth)=[\w.~+/%=-]{8,})"
)

SHAPES: dict[str, re.Pattern[str]] = {
    "private key": _PRIVATE_KEY,
    "webhook URL": _WEBHOOK,
    "password in a URL": _URL_PASSWORD,
    "password of a command": _COMMAND_PASSWORD,
    "password": _NAMED_PASSWORD,
    "cookie": _COOKIE,
    "bearer token": _BEARER,
    "API key": _API_KEY,
}
