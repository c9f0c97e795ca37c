"""Languages of what is stored and asked: which one a text is in, its stemmer, and its function words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

import Stemmer

ENGLISH: Final = "en"
"""What a text in Latin letters counts as when nothing speaks for another language."""
SIMPLE: Final = ""
"""Words as they are written: what a language without a stemmer gets."""

STEMMERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ENGLISH: "english",
        "cs": "czech",
        "da": "danish",
        "de": "german",
        "es": "spanish",
        "fi": "finnish",
        "fr": "french",
        "hu": "hungarian",
        "it": "italian",
        "nl": "dutch",
        "no": "norwegian",
        "pl": "polish",
        "pt": "portuguese",
        "ro": "romanian",
        "sv": "swedish",
        "tr": "turkish",
    }
)
"""Snowball's name of each language in Latin letters, by ISO 639-1 code."""
_SAME = {"nb": "no", "nn": "no"}

_SCRIPTS: Final = (
    (re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]"), "el", "greek"),
    (re.compile(r"[\u0400-\u04ff]"), "ru", "russian"),
    (re.compile(r"[\u0530-\u058f]"), "hy", "armenian"),
    (re.compile(r"[\u0600-\u06ff]"), "ar", "arabic"),
    (re.compile(r"[\u0900-\u097f]"), "hi", "hindi"),
    (re.compile(r"[\u0b80-\u0bff]"), "ta", "tamil"),
)
"""Letters that one stemmer serves, whatever else the text is written in."""
_LATIN: Final = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]")
_WITHOUT_SPACES: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
"""Runs of letters of languages that put no space between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""

_ENGLISH_WORDS = """
a an the and or but if then else so than as of at by for from in into on onto to up with without about over under again
off out down through during before after above below between against because until while per via
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves this that these those there here some any each both few more most other
such own same all no nor not only very too just also
am is are was were be been being do does did doing done have has had having can could will would shall should may might
must cannot don't doesn't didn't isn't aren't wasn't weren't won't wouldn't can't couldn't i'm i've i'll i'd you're
you've you'll he's she's it's we're we've they're they've that's let's
what when where who whom whose which why how what's who's where's when's how's
"""
_FUNCTION_WORDS = {
    "cs": """já ty on ona ono my vy oni mě mi mne tě ti ho mu ji jí nás nám vás vám jich jim se si svůj můj moje má tvůj
        ten ta to ty tento tato toto a i ale nebo že aby když protože jako na v ve z ze do od pro s se u k ke o po při
        za nad pod před je jsou byl byla bylo byli jsem jsi jsme jste být bude budu budou ne není kdo co kde kdy proč
        jak který která které tak také jen už ještě""",
    "da": """jeg du han hun vi jer de mig dig ham hende os dem min mit mine din dit dine sin sit sine hans hendes vores
        deres en et den det og eller men at som hvis når fordi i på til fra med uden om for af ved over under efter er
        var være været har havde have kan kunne skal skulle vil ville må ikke ingen hvem hvad hvor hvornår hvorfor
        hvordan hvilken der også bare meget nu""",
    "de": """ich du er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen mein meine meinen meinem meiner meines
        dein deine deinen deinem deiner sein seine seinen seinem seiner ihre ihren ihrem ihrer unser unsere unseren
        unserem unserer euer eure der die das den dem des ein eine einen einem einer eines und oder aber dass daß wenn
        weil als wie ob damit denn sondern in im an am auf aus bei beim mit nach seit von vom zu zum zur für gegen ohne
        um durch über unter vor zwischen ist sind war waren bin bist seid sei gewesen wird werden wurde wurden hat habe
        haben hast hatte hatten kann können muss müssen soll sollen will wollen darf möchte nicht kein keine keinen
        auch nur noch schon sehr so da hier dort man sich wer wen wem was wo wohin woher wann warum wieso welche
        welcher welches dieser diese dieses diesen diesem""",
    "es": """yo tú él ella ello nosotros vosotros ellos ellas usted ustedes me te se nos os le les lo la los las mi mis
        tu tus su sus nuestro nuestra nuestros nuestras el un una unos unas y e o u pero que porque cuando como si
        aunque de del en a al con sin por para sobre entre hasta desde hacia es son era eran fue fueron ser sido soy
        eres somos está están estaba estoy hay ha he han había tiene tengo tienen no ni muy más menos ya también solo
        sólo este esta esto estos estas ese esa eso quién qué dónde cuándo cómo cuál cuáles cuánto por""",
    "fi": """minä sinä hän me te he se ne minun sinun hänen meidän teidän heidän minua sinua häntä minulla sinulla
        hänellä minulle ja tai mutta että kun jos koska kuin joka jotka mikä mitä missä mistä mihin milloin miksi miten
        kuka ketä kenen on ovat oli olivat olen olet olemme olla ollut ei en et emme eivät tämä tuo nämä myös vain
        hyvin nyt sitten jo vielä""",
    "fr": """je tu il elle on nous vous ils elles me te se moi toi lui leur leurs eux mon ma mes ton ta tes son sa ses
        notre nos votre vos le la les un une des du de d' l' au aux et ou mais que qui quoi dont où car donc si comme
        quand parce lorsque dans en sur sous avec sans pour par chez vers entre à est sont était étaient être été suis
        es sommes êtes ai as a avons avez ont avait avoir ne pas plus très aussi ce cet cette ces c'est y déjà encore
        comment pourquoi quel quelle quels quelles j'ai j'aime qu'il qu'elle""",
    "hu": """én te ő mi ti ők engem téged őt minket nekem neked neki az a egy és vagy de hogy ha mert mint amikor aki
        ami amely nem is csak már még van vannak volt voltak lesz vagyok vagy lenni ez ezek azok itt ott ki mi mit hol
        hová honnan mikor miért hogyan melyik nagyon most""",
    "it": """io tu lui lei noi voi loro mi ti si ci vi lo la li le gli ne mio mia miei mie tuo tua tuoi tue suo sua suoi
        sue nostro nostra nostri vostro il i un uno una e ed o ma che perché quando come se anche di del dello della
        dei degli delle a al allo alla ai agli alle da dal dalla in nel nella nei nelle con su sul sulla per tra fra
        senza è sono era erano essere stato stata sei siamo ho hai ha abbiamo avete hanno aveva avere non più molto
        già ancora questo questa questi queste quello quella chi cosa dove quale quali quanto""",
    "nl": """ik jij je hij zij ze het wij we jullie mij me jou hem haar ons hen hun mijn jouw zijn onze de een en of
        maar dat die als omdat wanneer toen dan in op aan van voor met zonder naar uit bij door over onder tussen tot
        is ben bent was waren wordt worden werd heeft heb hebben had kan kunnen moet moeten zal zullen wil willen niet
        geen ook nog al heel zeer wie wat waar waarom hoe welke deze dit er om te""",
    "no": """jeg du han hun vi dere de meg deg ham henne oss dem min mitt mine din ditt dine sin sitt sine hans hennes
        vår vårt våre deres en et ei den det og eller men at som hvis når fordi i på til fra med uten om for av ved
        over under etter er var være vært har hadde ha kan kunne skal skulle vil ville må ikke ingen hvem hva hvor
        når hvorfor hvordan hvilken også bare veldig nå""",
    "pl": """ja ty on ona ono my wy oni one mnie mi ciebie cię ci jego go jemu mu jej ją nas nam was wam ich im się mój
        moja moje twój twoja swój ten ta to te i a ale lub albo że żeby gdy kiedy bo ponieważ jak jako w we na z ze do
        od dla przez przy po pod nad przed za o u jest są był była było byli jestem jesteś być będzie nie kto co gdzie
        dlaczego który która które tak też także tylko już jeszcze bardzo""",
    "pt": """eu tu ele ela nós vós eles elas você vocês me te se nos lhe lhes o a os as meu minha meus minhas teu tua
        seu sua seus suas nosso nossa um uma uns umas e ou mas que porque quando como se embora de do da dos das em no
        na nos nas ao à aos às com sem por pelo pela para sobre entre até desde é são era eram foi foram ser sido sou
        somos está estão estava estou há tem têm tenho tinha não nem muito mais menos já também só este esta isto esse
        essa isso quem quê onde qual quais quanto""",
    "ro": """eu tu el ea noi voi ei ele mă te se ne vă îl o îi le mie ție lui îmi îți meu mea mei mele tău ta său sa
        nostru un o unei unui și sau dar că dacă când pentru deoarece ca cum de din la în pe cu fără prin spre între
        este sunt era erau fi fost sunt ești suntem are am ai au avea nu mai foarte și deja încă acest această cine ce
        unde care cât""",
    "sv": """jag du han hon vi ni de mig dig honom henne oss er dem min mitt mina din ditt dina sin sitt sina hans
        hennes vår vårt våra deras en ett den det och eller men att som om när eftersom i på till från med utan för av
        vid över under efter är var vara varit har hade ha kan kunde ska skulle vill ville måste inte ingen vem vad var
        varför hur vilken också bara mycket nu""",
    "tr": """ben sen o biz siz onlar beni seni onu bizi sizi bana sana ona benim senin onun bizim sizin onların ve veya
        ya da ama fakat ki eğer çünkü gibi için ile bir bu şu değil var yok mı mi mu mü de çok daha en kim ne nerede
        nereye ne zaman neden niçin nasıl hangi olan olarak idi""",
}
STOP_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {ENGLISH: frozenset(_ENGLISH_WORDS.split())}
    | {code: frozenset(said.split()) for code, said in _FUNCTION_WORDS.items()}
)
"""By language, the words that say how a sentence is put, not what it is about."""

_ENGLISH_TOO = frozenset(
    """die war man hat bin all an am as so to do on me no in is was has had have her he we she or for of den men dem
    son par plus sur ton pour comment sin solo con era sea once dan bent op ben moet wil pin ten van hen hem hun zeer
    mine under over sit hans du de et es est le la les un ne ma mes ta tu te ti mi si se su os or au ai al el il i a o
    y u e d du ex por com das dos des der da del san los las chi per via come sole made case fare vi ni ha var er min
    my by ty on one pod nad ten to te at ki var yok kim gibi bu tak co za po ve""".split()  # noqa: SIM905 - as the rest
)
"""Foreign words without meaning of their own that English texts hold too, in names and as words of English."""


def _evidence() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for code, said in STOP_WORDS.items():
        for word in () if code == ENGLISH else said - _ENGLISH_TOO - STOP_WORDS[ENGLISH]:
            found[word] = (*found.get(word, ()), code)
    return found


_EVIDENCE = _evidence()


def language_of(words: Sequence[str]) -> str:
    """The language that words in Latin letters are in, by the function words among them; English unless others lead.

    Args:
        words: in lower case.
    """
    distinct = set(words)
    telling = _EVIDENCE.keys() & distinct
    if not telling:
        return ENGLISH
    said = Counter(code for word in telling for code in _EVIDENCE[word])
    code, found = max(said.items(), key=lambda pair: pair[1])
    english = len(distinct & STOP_WORDS[ENGLISH] - STOP_WORDS[code])
    return code if found > english and (found > 1 or len(words) <= MOST_WORDS_FOR_ONE) else ENGLISH


MOST_WORDS_FOR_ONE: Final = 6
"""In a text of more words, one foreign function word may stand in a name."""


def known(code: str | None) -> str | None:
    """The code under which a language's words are kept, or ``None`` when it is to be found out."""
    if code is None:
        return None
    code = _SAME.get(code, code)
    return code if code in STEMMERS else SIMPLE


def script_of(word: str) -> str | None:
    """The language whose stemmer serves the letters of a word; ``None`` for Latin ones, which many languages share."""
    if word.isascii():
        return None
    for letters, code, _ in _SCRIPTS:
        if letters.search(word):
            return code
    return None if _LATIN.search(word) else SIMPLE


def pieces(word: str) -> list[str]:
    """A word as it is searched: where words have no space between them, each pair of letters stands for one."""
    if word.isascii() or not _WITHOUT_SPACES.search(word):
        return [word]
    found: list[str] = [each for each in _WITHOUT_SPACES.split(word) if each]
    for run in _WITHOUT_SPACES.findall(word):
        found.extend([run] if len(run) == 1 else [run[place : place + 2] for place in range(len(run) - 1)])
    return found


@cache
def stemmer(code: str) -> "Stemmer.Stemmer":
    """The stemmer of a language that has one."""
    made = Stemmer.Stemmer(STEMMERS.get(code) or _BY_SCRIPT[code])
    made.maxCacheSize = 50_000 if code == ENGLISH else 10_000
    return made


_BY_SCRIPT = {code: name for _, code, name in _SCRIPTS}
