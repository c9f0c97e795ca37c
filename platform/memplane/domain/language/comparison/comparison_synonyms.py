"""English words that mean the same, are spelt in two ways or are forms of one verb; general vocabulary, no facts."""

import Stemmer

_STEMMER = Stemmer.Stemmer("english")
_STEMMER.maxCacheSize = 50_000


def stem(word: str) -> str:
    """The stem of a lower-case word; names and vocabulary go the same way."""
    found: str = _STEMMER.stemWord(word)
    return found


def rows(text: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in text.strip().splitlines()]


def _canonical(text: str) -> dict[str, str]:
    """From each word of a line, and its stem, to the stem of the line's first."""
    found = {}
    for first, *others in rows(text):
        for word in (first, *others):
            found[word] = stem(first)
            found.setdefault(stem(word), stem(first))
    return found


CANONICAL = _canonical("""
live reside resides dwell living lives lived
buy purchase bought acquire
start begin began begun commence started
finish complete finished completing
child children kids kid
mother mum mom mummy
father dad daddy papa
apartment flat
gift present
bike bicycle
car automobile
phone telephone cellphone
television tv
photo photograph picture
doctor physician
paediatric pediatric
succeed success succeeded pass passed passes
accept approve approved accepted
colour color
favourite favorite
neighbour neighbor
programme program
centre center
licence license
organise organize
practise practice
metre meter m metres
kilometre kilometer km kms
kilogram kilo kg kilos kgs
gram g
centimetre cm
litre liter
euro eur €
dollar usd $
pound gbp £
percent % pct
hour hr hrs
minute min mins
maximum max
minimum minimal
number no.
email e-mail mail
wifi wi-fi
name called named
like enjoy love adore appreciate fond fan keen likes loved liked
want wish desire
plan intend aim hope intention goal planned scheduled slated
prefer favour favor
need must should
request ask asks
allow permit allowed permitted permissible
lead led head headed heads leads
own owner owns owned possess
manage manager managed
write written wrote
speak spoke spoken
run ran running runs
teach taught
make made
build built
send sent
keep kept
hold held
pay paid
meet met
win won
find found
give gave given
take took taken
go went gone goes
come came comes
see saw seen
know knew known
think thought
sell sold
leave left
break broke broken
drive drove driven drives
eat ate eaten
drink drank drunk
sing sang sung
swim swam swum
fly flew flown
choose chose chosen
become became
grow grew grown
teacher schoolteacher educator
lawyer attorney
developer programmer coder
profession occupation vocation
job position
boss supervisor superior
colleague coworker co-worker workmate
company firm
employ hire
doctorate phd ph.d
allergy allergic
intolerant intolerance
interest interested
hometown home-town
film movie films
holiday vacation
autumn fall
shop store
repair fix mend fixed
big large huge
small little tiny
quick fast rapid
afraid scared frightened
happy glad
sick ill
clever smart intelligent
help assist
reply answer response respond
deadline due
postgres postgresql
kubernetes k8s
javascript js
typescript ts
database db
repository repo
application app apps
document doc documents
documentation docs
configuration config
production prod
development dev
environment env
information info
laptop notebook
weekly every-week
daily everyday
birthday birthdate
appointment booking
located situated
study studied studies studying
husband hubby
grandmother grandma granny
grandfather grandpa
tongue language
native first-language
commute commutes
restaurant eatery
often frequently regularly
always constantly
currently presently
sometimes occasionally
""")
"""Synonyms, spellings and irregular forms. Words that only resemble each other must not share a line."""
