"""The forms that personal data takes in text, as patterns, with the words that announce it.

Each is linear in the length of the text: its repetitions are bounded, or begin only where a run begins. Names that end
in ``_CUE`` are searched in lower-case text, and what they announce is matched right behind them.
"""

import re

RUN = re.compile("[0-9]+")
EMAIL = re.compile(r"(?<![\w.+%'-])[\w+%'][\w.+%'-]*@(?:[\w-]+\.)+(?:[^\W\d_]{2,63}|xn--[a-z0-9-]{2,59})(?![\w@])")
_AT = r"(?:@|\s{0,2}[\[({<]\s?(?:at|@)\s?[\])}>]\s{0,2}|\sat\s)"
_DOT = r"(?:\.|\s{0,2}[\[({<]\s?(?:dot|\.)\s?[\])}>]\s{0,2}|\sdot\s)"
SPOKEN_EMAIL = re.compile(
    rf"(?<![\w.+%-])(?:[\w+%-]+{_DOT}){{0,3}}[\w+%-]+{_AT}(?:[\w-]+{_DOT}){{1,4}}[^\W\d_]{{2,63}}(?!\w)", re.IGNORECASE
)

SPOKEN_MARKS = (
    " dot ",
    "at)",
    "at]",
    "at}",
    "at>",
    "at )",
    "at ]",
    "@)",
    "@]",
    "dot)",
    "dot]",
    "dot }",
    "dot )",
    "dot}",
)

IBAN_LENGTHS = dict(
    re.findall(
        r"([A-Z]{2})(\d\d)",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
        "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
        "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
        "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 "
        "YE30",
    )
)


IBAN_START = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}")
IP4 = re.compile(r"(?<![\w.-])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w-]|\.[0-9])")
IP6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{3,39}(?![\w:])")
NUMBERING = re.compile(r"(?:v|ver|version|release|build|section|chapter|paragraph|article|oid)\.?[ :]*$")

WORLD_PHONE = re.compile(r"\+(?<![\w+]\+)\s?\(?[1-9](?:[ ./()-]{0,3}[0-9]){7,14}(?![0-9])")
US_PHONE = re.compile(
    r"(?<![0-9][ ./()-])(?<![\w(.,$€£-])(?:1[ .-])?(?:\([2-9][0-9]{2}\)[ -]?[0-9]{3}[ .-][0-9]{4}"
    r"|[0-9]{3}(?P<mark>[ .-])[0-9]{3}(?P=mark)[0-9]{4})(?![\w-]|[.,][0-9])"
)
HOME_PHONE = re.compile(
    r"(?<![0-9][ ./()-])(?<![\w(.,:/$€£+-])\(?0[0-9]{1,5}(?:[ ./()-]{1,3}[0-9]{2,8}){1,6}(?![\w%€]|[.,:/-][0-9])"
)
PHONE_CUE = re.compile(
    r"(?:phone|telephone|tel|telefon|mobile|cell|handy|fax|whatsapp|mobil)(?:phone)?\b\.?"
    r"(?:[\s:=#'’-]{1,3}(?:number|nummer|no|nr|s|is|ist|was|at|on|under|me|him|her|us|them|now)\b\.?){0,4}[\s:=#]{0,3}"
)
PHONE = re.compile(r"\+?\(?[0-9](?:[ ./()-]{0,3}[0-9]){6,14}(?!\w)")
CALL_CUE = re.compile(
    r"(?:call|text|ring|dial|reach|message|anrufen|number)(?:\s(?:me|him|her|us|them|is|at|on|under|back|now)){0,4}[\s:]{1,3}"
)
GROUPED = re.compile(
    r"\(?[0-9]{2,5}(?:[ ./()-]{1,3}[0-9]{2,5}){1,5}(?![\w%€]|[.,:][0-9]|\s(?:people|users|times|customers|units))"
)
DATE_IN = re.compile(
    r"(?:19|20)[0-9]{2}[-./][0-9]{1,2}[-./][0-9]{1,2}|^\(?[0-9]{1,2}([-./ ])[0-9]{1,2}\1(?:19|20)[0-9]{2}"
)
ORDER_WORD = re.compile(
    r"(?:order|invoice|ticket|case|ref|reference|isbn|issn|sku|part|serial|tracking|parcel|build|model|article|issue"
    r"|bestellung|rechnung)(?:\s?(?:number|nummer|no|nr|id|code|is|was))*[\s.:#]*$"
)

SSN = re.compile(r"(?<![\w-])(?!000|666)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w-])")
ID_CUE = re.compile(
    r"(?:passport|reisepass|ssn|social security|national insurance|nino|tax ?(?:payer )?id(?:entification)?|tin|itin"
    r"|ein|vat|ust-?id(?:-?nr)?|steuer-?id|steuer-?nummer|steuernr|nif|dni|cpf|bsn|aadhaar|codice fiscale|personnummer"
    r"|national id|identity card|id card|personalausweis|driver['’]?s? licen[cs]e|driving licen[cs]e)\b\.?"
    r"(?:[\s:#-]{1,3}(?:number|nummer|no|nr|id|code|is|ist|was)\b\.?){0,4}[\s:#=]{1,3}"
)
ID = re.compile(
    r"(?:[A-Za-z]{0,3} ?[0-9](?:[ ./-]?[0-9]|[A-Za-z]){4,18}(?: ?[A-D])?|[A-Za-z]{4,6}[0-9][0-9A-Za-z]{5,11})(?!\w)"
)

_MONTH = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?"
    r"|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\b\.?"
)
_DAY = r"[0-3]?[0-9](?:st|nd|rd|th|\.)?"
_DATE = (
    r"(?:(?:19|20)[0-9]{2}-[01]?[0-9]-[0-3]?[0-9]|[0-3]?[0-9](?P<sep>[./-])[0-3]?[0-9](?P=sep)(?:[0-9]{4}|[0-9]{2})"
    rf"|{_DAY}\s(?:of\s)?{_MONTH}(?:,?\s[0-9]{{4}})?|{_MONTH}\s{_DAY}(?:,?\s[0-9]{{4}})?(?!\d)|{_MONTH},?\s[0-9]{{4}})(?![\w-])"
)
BIRTH_CUE = re.compile(
    r"(?:born|birthday|birth ?date|date of birth|dob|d\.o\.b\.?|geboren|geburtstag|geburtsdatum)"
    rf"(?P<between>(?:[\s:,-]{{1,3}}(?!{_MONTH}\s?[0-9])[^\W\d_][\w'’-]{{0,40}}){{0,7}})[\s:,=-]{{1,3}}(?={_DATE})"
)
DATE_AT = re.compile(_DATE, re.IGNORECASE)
BEFORE_DATE = frozenset(("on", "in", "at", "is", "was", "the", "falls", "am", "ist", "near"))

_CAP = "[A-ZÀ-ÖØ-Þ]"
_NAME = rf"{_CAP}[\w'’.-]{{0,40}}"
_STREET = (
    "(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Place|Pl|Square|Sq|Terrace|Way|Parkway|Pkwy"
    r"|Close|Crescent|Highway|Hwy|Gardens|Mews|Row|Hill|Quay)\b\.?(?:\s[NS]?[EW]\b)?"
)
_UNIT = r"(?:,?\s(?:Apt|Apartment|Suite|Ste|Flat|Unit|Floor|No)\b\.?\s?#?\w{1,6}|,?\s#\w{1,6})?"
_POSTCODE = r"(?:[A-Z]{2}\s[0-9]{5}(?:-[0-9]{4})?|[A-Z]{1,2}[0-9][0-9A-Z]?\s[0-9][A-Z]{2}|[0-9]{4,5})(?![\w-])"
_TOWN = rf"(?:,\s{_NAME}(?:\s{_NAME}){{0,2}})?,?\s{_POSTCODE}"
_PLZ = rf",?\s(?:[A-Z]{{1,2}}-)?[0-9]{{4,5}}\s{_NAME}(?:[ -](?:am|an der|im)\s{_NAME})?"
NUMBERED = (
    re.compile(
        rf"(?<![\w.,:/$€£-])[0-9]{{1,5}}[A-Za-z]?(?:-[0-9]{{1,5}})?,?\s(?:[NSEW]\.?\s)?"
        rf"(?:(?:{_NAME}|[0-9]{{1,3}}(?:st|nd|rd|th))\s){{1,4}}{_STREET}{_UNIT}(?:{_TOWN})?"
    ),
    re.compile(
        r"(?<![\w.,/-])[0-9]{1,4}(?:\s?(?:bis|ter))?,?\s(?:rue|avenue|boulevard|place|chemin|quai|allée)\s"
        rf"(?:(?:de|du|des|la|le|l['’])\s?){{0,2}}{_NAME}(?:\s{_NAME})?(?:,?\s[0-9]{{5}}\s{_NAME})?"
    ),
)
ROADS: tuple[str, ...] = (
    "straße",
    "strasse",
    "str.",
    "weg",
    "gasse",
    "allee",
    "platz",
    "chaussee",
    "gatan",
    "gata",
    "gade",
    "straat",
)
ROADS += ("laan", "gracht", "vägen", "veien", "vej")
HOUSE = re.compile(rf"[0-9]{{1,4}}(?:\s?[a-zA-Z]\b)?(?!\w|[.,][0-9])(?:{_PLZ})?")
PLACED = re.compile(
    rf"(?<![\w.-]){_NAME}(?:\s[\w.-]{{1,40}}){{0,3}}\s[0-9]{{1,4}}\s?[a-z]?,\s(?:D-)?[0-9]{{5}}\s{_NAME}"
)
SOUTHERN = re.compile(
    rf"(?:Via|Viale|Calle|Carrer|Piazza|Plaza|Rua)\s(?:\w{{1,4}}\s)?{_NAME}(?:\s{_NAME})?,?\s[0-9]{{1,4}}\b"
)
SOUTHERN_WORDS = ("Via ", "Viale ", "Calle ", "Carrer ", "Piazza ", "Plaza ", "Rua ")
BOX = re.compile(r"p\.?\s?o\.?\s?box\s[0-9]{1,6}\b")
HOME_CUE = re.compile(r"(?:live[sd]? at|address(?: is|:))\s")
PLAIN_STREET = re.compile(
    r"[0-9]{1,5}[a-z]?\s(?:[a-z'’-]{1,30}\s){1,4}(?:street|st|avenue|ave|road|rd|lane|ln|drive|boulevard|court|place|square"
    r"|terrace|way)\b"
)
YEAR_BEFORE = ("in ", "since ", "by ", "until ", "during ", "of ", "from ", "before ", "after ")

MARKS = re.compile(r"(?:\[(?:email|phone|address|card|iban|id_number|ip|birth_date|secret)\])+[.,;:!?'\")\]]*$")
KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[\w-]{30,}|ya29\.[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_[a-f0-9]{32,}|shpat_[a-f0-9]{24,}"
    r"|eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?|AGE-SECRET-KEY-1\w{20,})"
)
KEY_MARKS: tuple[str, ...] = (
    "sk-",
    "sk_",
    "pk-",
    "pk_",
    "rk-",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
)
KEY_MARKS += ("AKIA", "ASIA", "AIza", "hf_", "npm_", "pypi-", "ya29.", "SG.", "dop_v1_", "shpat_", "eyJ", "AGE-SECRET")
BEARER_CUE = re.compile(r"bearer\s{1,3}")
BEARER = re.compile(r"(?=[\w.~+/=-]{0,200}[0-9]|[\w.~+/=-]{20})[\w.~+/=-]{8,}")
PASSWORD_CUE = re.compile(
    r"(?:password|passwd|passwort|passphrase|passcode|pwd|kennwort|pin)(?:\s(?:for|of|to)(?:\s[\w.-]{1,30}){1,3}?)?"
    r"(?:(?P<is>\s(?:is|was|ist)(?:\snow)?:?\s{1,2})|['\"]?\s?[:=]\s{0,2})"
)
PASSWORD = re.compile(r"\S{3,}")
TOKEN_CUE = re.compile(
    r"(?:apikey|authtoken|accesstoken|secretkey|key|token|secret)['\"]?(?:\s(?:is|was|ist):?\s|\s?[:=]\s{0,2})['\"]?"
)
TOKEN = re.compile(r"(?=[\w./+=~-]{0,200}[0-9])[\w./+=~-]{12,}")
LOGIN = re.compile(r"://([^\s/:@]{1,100}:[^\s/@]{1,200}@[^\s/:?#]{1,253})")
NO_PASSWORD = frozenset(
    [
        "required",
        "optional",
        "wrong",
        "correct",
        "incorrect",
        "invalid",
        "valid",
        "expired",
        "stored",
        "hashed",
        "encrypted",
        "reset",
        "changed",
        "missing",
        "empty",
        "the",
        "not",
        "too",
        "weak",
        "strong",
        "long",
        "short",
        "known",
        "unknown",
        "safe",
        "secure",
        "set",
        "needed",
        "being",
        "still",
        "also",
        "only",
        "always",
        "never",
        "case",
        "shared",
        "same",
        "kept",
        "sent",
        "saved",
        "lost",
        "forgotten",
        "protected",
        "compromised",
        "rotated",
        "asked",
        "what",
        "where",
        "your",
        "his",
        "her",
        "their",
        "our",
    ]
)
