"""Words by which the finder of entities tells names from other words, and one kind of name from another."""


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


CALENDAR = _words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august",
    "september october november december mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec",
    "christmas easter today tomorrow yesterday tonight am pm utc gmt cet montag dienstag mittwoch donnerstag freitag",
    "samstag sonntag",
)
"""Days, months and times."""

PEOPLES = _words(
    "english german french spanish italian portuguese dutch swedish norwegian danish finnish polish russian ukrainian",
    "czech greek turkish arabic hebrew hindi chinese mandarin cantonese japanese korean vietnamese thai indonesian",
    "hungarian romanian bulgarian irish scottish welsh british american canadian mexican brazilian indian australian",
    "austrian swiss european african asian latin catalan belgian icelandic persian urdu bengali tamil swahili",
    "argentinian egyptian israeli americans germans europeans italians christian christians muslim muslims jewish",
    "buddhist catholic protestant hindu",
)
"""Languages, nationalities and religions."""

ORDINARY = _words(
    "i me my mine we us our ours you your yours he him his she her hers it its they them their theirs this that these",
    "those the a an and or but nor so if then else when where who whom whose which what why how while because since",
    "until unless although though as at by for from in into of off on onto out over to under up with without about",
    "after before during between against per via not no yes never always often sometimes usually maybe perhaps also",
    "just only even still yet there here now soon later once again all any both each every few many more most other",
    "some such same several am is are was were be been being do does did done have has had can could will would shall",
    "should may might must let please thanks thank hello hi hey dear sorry ok okay well oh everyone everybody someone",
    "somebody nobody anyone people person user users assistant agent team customer client nothing something anything",
    "one two three four five six seven eight nine ten first second third last next new old good great nice however",
    "therefore moreover meanwhile instead despite remember remind call ask tell email text meet visit see send give",
    "take make write read buy book check note use add set get go come keep find show open close run start stop try",
    "want need like love hate prefer think know say said met saw went got told asked called made took gave bought",
    "booked recently currently previously originally today his-her mom mum dad mother father sister brother wife",
    "husband son daughter uncle aunt grandma grandpa friend boss dr mr mrs ms prof summary title subject notes todo",
    "question answer step update fact facts example der die das und ich er sie es wir ein eine mein meine ist im mit",
    "von für nicht api url http https json sql pdf html css faq ceo cto cfo id ui ux ai asap fyi tbd eta phone card",
    "iban ssn passport password pin born lives likes works home work school",
)
"""Words that stand with a capital only where a sentence begins or a label stands, and common abbreviations."""

TITLES = _words(
    "dr mr mrs ms miss mx prof professor doctor sir madam lady lord herr frau president ceo cto senator judge",
)
TITLES |= _words(
    "captain chancellor minister uncle aunt grandma grandpa coach pastor rabbi",
)
"""What precedes a person's name and is no part of it."""

RELATIONS = _words(
    "sister brother mother father mom mum dad son daughter wife husband partner girlfriend boyfriend fiancé fiancée",
    "fiance fiancee friend colleague coworker boss manager neighbour neighbor cousin aunt uncle niece nephew",
    "grandmother grandfather grandma grandpa teacher doctor dentist therapist lawyer roommate flatmate ex spouse",
    "child kid baby twin mentor student stepmother stepfather assistant supervisor teammate landlord landlady stepson",
    "stepdaughter godmother godfather",
)
PERSON_BEFORE = RELATIONS | _words(
    "met married dating hired named called asked told emailed phoned thanked invited hugged",
)
PERSON_BEFORE |= _words(
    "befriended interviewed congratulated divorced babysat remind tell ask",
)
PERSON_AFTER = _words(
    "said says told tells asked asks likes loves hates dislikes prefers wants thinks believes lives lived married",
    "moved works worked studies studied plays enjoys visited bought wrote met feels knows speaks teaches taught plans",
    "owns hopes decided agreed suggested mentioned promised graduated retired drinks eats cooks sings paints swims",
    "who whose he she sent called replied joined hired recommended wears misses drives dreams lost found needs",
    "complained laughed cried went",
)
"""Words behind a name that people do."""

PLACE_BEFORE = (
    "lives in",
    "live in",
    "lived in",
    "living in",
    "moved to",
    "moving to",
    "move to",
    "born in",
    "based in",
    "raised in",
    "comes from",
    "come from",
    "travel to",
    "travels to",
    "travelled to",
    "traveled to",
    "travelling to",
    "traveling to",
    "trip to",
    "flew to",
    "flight to",
    "flying to",
    "fly to",
    "drove to",
    "vacation in",
    "holiday in",
    "relocated to",
    "relocating to",
    "city of",
    "town of",
    "arrived in",
    "office in",
    "house in",
    "apartment in",
    "flat in",
    "grew up in",
    "staying in",
    "stayed in",
    "resides in",
    "going to",
    "went to",
    "headquartered in",
)
ORGANISATION_BEFORE = (
    "works at",
    "work at",
    "worked at",
    "working at",
    "works for",
    "work for",
    "worked for",
    "working for",
    "job at",
    "employed by",
    "employed at",
    "hired by",
    "intern at",
    "interned at",
    "internship at",
    "engineer at",
    "manager at",
    "employer is",
    "company called",
    "startup called",
    "company named",
    "founded",
    "ceo of",
    "cto of",
    "founder of",
    "acquired by",
    "studies at",
    "studied at",
    "student at",
    "professor at",
    "company",
    "startup",
    "employer",
    "vendor",
    "firm",
    "joined",
)

ORGANISATION_LAST = _words(
    "gmbh inc ltd llc plc ag se corp co company corporation university bank institute college hospital school",
    "foundation group labs airlines airways museum technologies systems solutions partners holdings kg sa bv ab oy",
    "spa academy agency association council committee ministry department orchestra society institut universität",
    "hochschule stiftung verein",
)
ORGANISATION_FIRST = _words(
    "university bank ministry institute department universität museum college federation",
)
PLACE_LAST = _words(
    "city island islands river lake mountain mountains valley beach street avenue road airport park square bridge",
    "county province station bay coast desert forest harbour harbor",
)
PLACE_FIRST = _words(
    "lake mount mt port fort cape",
)
PROJECT_LAST = _words(
    "project repo repository initiative",
)

PLACES = _words(
    "afghanistan albania algeria argentina armenia australia austria azerbaijan bangladesh belarus belgium bolivia",
    "brazil bulgaria cambodia cameroon canada chile china colombia croatia cuba cyprus denmark ecuador egypt england",
    "estonia ethiopia europe africa asia america finland france germany ghana greece hungary iceland india indonesia",
    "iran iraq ireland israel italy japan kenya kuwait latvia lebanon lithuania luxembourg malaysia malta mexico",
    "moldova mongolia morocco nepal netherlands nigeria norway pakistan panama peru philippines poland portugal qatar",
    "romania russia rwanda scotland senegal serbia singapore slovakia slovenia somalia spain sweden switzerland syria",
    "taiwan tanzania thailand tunisia turkey uganda ukraine uruguay uzbekistan venezuela vietnam wales yemen zambia",
    "zimbabwe usa uk uae eu amsterdam athens bangkok barcelona beijing belgrade bergen berlin boston brussels",
    "bucharest budapest cairo chicago cologne copenhagen dallas delhi denver detroit dubai dublin edinburgh florence",
    "frankfurt geneva hamburg hanoi helsinki houston istanbul jakarta jerusalem johannesburg kyiv kyoto lagos leipzig",
    "lima lisbon london lyon madrid manchester manila marseille melbourne miami milan montreal moscow mumbai munich",
    "nairobi naples osaka oslo ottawa paris philadelphia phoenix portland porto prague reykjavik riga rome rotterdam",
    "seattle seoul shanghai stockholm stuttgart sydney tallinn tokyo toronto trondheim turin vancouver venice vienna",
    "vilnius warsaw zagreb zurich zürich münchen köln wien california texas florida bavaria tuscany manhattan",
    "brooklyn oxford cambridge",
) | {
    "new york",
    "los angeles",
    "san francisco",
    "united states",
    "united kingdom",
    "hong kong",
    "south africa",
    "new zealand",
    "south korea",
    "north korea",
    "saudi arabia",
    "las vegas",
    "san diego",
    "rio de janeiro",
    "buenos aires",
    "tel aviv",
    "costa rica",
    "sri lanka",
    "cape town",
    "mexico city",
    "são paulo",
    "new orleans",
    "new delhi",
    "st. gallen",
}

GIVEN_NAMES = _words(
    "adam ahmed aisha alan alex alexander alexandra ali alice amanda amelia amir amy ana anders andrea andreas andrew",
    "angela anita ann anna anne anthony antonio arthur barbara ben benjamin beth bob brian bruno carl carla carlos",
    "carmen caroline catherine charles charlie charlotte chloe chris christina christine christopher clara claire",
    "daniel daniela dave david deborah diana diego dmitri dorothy edward elena eleanor elias elizabeth ella emil",
    "emily emma eric erik ethan eva evelyn fatima felix fiona florian frank fred frieda gabriel george giulia grace",
    "greta hannah hans harry heidi helen helena henry hiro hugo ian ingrid irene isabel isabella ivan jack jacob",
    "jakob james jan jane janet jason jennifer jessica jim joan joe johan johann john jonas jonathan jose joseph josh",
    "juan judith julia julian julie kai karen karin karl kate katherine kevin kim klaus kumar lara lars laura lea",
    "lena leo leon leonie lily linda lisa louis luca lucas lucia lucy luis luke lukas maja marc marco margaret maria",
    "marie mario mark markus marta martha martin mary mateo matt matthew max maya mehmet melissa mia michael michelle",
    "miguel mike mila mohammed moritz nadia nancy natalie nathan nicole nils nina noah nora olaf oliver olivia omar",
    "oscar otto pablo patricia patrick paul paula pedro peter philip pierre priya rachel rafael raj rebecca richard",
    "rita robert roberto rosa ruth ryan sam samantha samuel sandra sara sarah sebastian sofia sophia sophie stefan",
    "stephanie stephen steve steven susan sven tanja teresa theo thomas tim tobias tom tomas tony ursula valentina",
    "vera victor victoria viktor vincent walter wei william yuki yusuf zoe åse jürgen jörg björn søren andré josé zoë",
)
