"""Irregular forms and abbreviations of English words; general vocabulary, no facts."""

from memplane.domain.language.comparison.comparison_synonyms import rows

IRREGULAR = {
    form: base
    for base, *forms in rows("""
be is are was were been being am
have has had having
do does did done
arise arose arisen
awake awoke awoken
beat beaten
become became
begin began begun
bend bent
bite bit bitten
bleed bled
blow blew blown
break broke broken
breed bred
bring brought
build built
burn burnt
buy bought
catch caught
choose chose chosen
cling clung
come came
creep crept
deal dealt
dig dug
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
flee fled
fly flew flown
forbid forbade forbidden
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
get got gotten
give gave given
go went gone goes
grow grew grown
hang hung
hear heard
hide hid hidden
hold held
keep kept
know knew known
lay laid
lead led
lean leant
learn learnt
leave left
lend lent
lie lay lain
lose lost
make made
mean meant
meet met
mistake mistook mistaken
pay paid
ride rode ridden
ring rang rung
rise rose risen
run ran
say said
see saw seen
seek sought
sell sold
send sent
shake shook shaken
shine shone
shoot shot
show shown
shrink shrank shrunk
sing sang sung
sink sank sunk
sit sat
sleep slept
slide slid
speak spoke spoken
spell spelt
spend spent
spin spun
stand stood
steal stole stolen
stick stuck
strike struck
swear swore sworn
sweep swept
swim swam swum
swing swung
take took taken
teach taught
tear tore torn
tell told
think thought
throw threw thrown
understand understood
wake woke woken
wear wore worn
weave wove woven
win won
withdraw withdrew withdrawn
overcome overcame
undergo underwent undergone
write wrote written
child children
foot feet
tooth teeth
mouse mice
goose geese
person people
man men
woman women
knife knives
wife wives
life lives
leaf leaves
half halves
shelf shelves
good better best
bad worse worst
far further
datum data
analysis analyses
""")
    for form in forms
}
"""From an irregular form to its base."""

ABBREVIATIONS = {
    short: long
    for long, *shorts in rows("""
headquarters hq
physiotherapist physio
veterinarian vet
certificate cert certs
authentication auth
administrator admin admins
temperature temp
apartment apt
department dept
university uni
approximately approx
appointment appt
subscription sub
specification spec specs
library lib libs
refrigerator fridge
influenza flu
teenager teen
laboratory lab labs
examination exam exams
advertisement ad ads
milligram mg
milliliter ml
millisecond ms
second sec secs s
gigabyte gb gigs
megabyte mb
terabyte tb
kilobyte kb
week wk wks
year yr yrs
month mo
pound lb lbs
kilogram kilo kilos kg kgs
ounce oz
master msc ma masters
bachelor bsc ba
memory ram
identification id
organization org
vegetable veg veggies
mathematics maths math
gymnasium gym
moped scooter
photograph pic pics
message msg
dinner supper
rehabilitation rehab
statistics stats
package pkg
directory dir
government govt
manager mgr
engineer eng
reference ref
television tv telly
microphone mic
limousine limo
hippopotamus hippo
dependency dep deps
repository repo repos
""")
    for short in shorts
}
"""From an abbreviation to the word that it stands for."""


def _opposites(text: str) -> dict[str, frozenset[str]]:
    """From each word of a line to what the line's first is to it, both ways."""
    found: dict[str, set[str]] = {}
    for first, *others in rows(text):
        found.setdefault(first, set()).update(others)
        for other in others:
            found.setdefault(other, set()).add(first)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _opposites("""
always rarely seldom
often rarely seldom
mandatory optional voluntary
required optional
compulsory optional voluntary
obligatory optional voluntary
north south
east west
friendly aggressive hostile unfriendly
enabled disabled off
benign malignant
working broken
operational broken down
married unmarried
vacant occupied
free busy occupied paid
full empty
paid unpaid free
healthy ill sick unhealthy
alive dead
awake asleep
guilty innocent
introvert extrovert
introverted extroverted
shy outgoing
optimist pessimist
optimistic pessimistic
liberal conservative
strict lenient lax
cheap expensive
quiet noisy loud
fast slow
reliable flaky unreliable
stable unstable flaky
calm nervous anxious
excellent terrible poor bad
good bad poor terrible
great terrible awful
easy hard difficult
simple complicated complex
clean dirty messy
tidy messy untidy
punctual late
early late
urban rural
permanent temporary
manual automatic automated
synchronous asynchronous
internal external
mutable immutable
positive negative
rich poor
tall short
thick thin
wet dry
hot cold
strong weak
heavy light
indoor outdoor
boring exciting interesting fascinating thrilling
relaxing stressful
soothing stressful
delicious disgusting revolting
tasty disgusting tasteless
beautiful ugly
comfortable uncomfortable
useful useless
fun boring
spacious cramped
polite rude
generous stingy
sorted unsorted
profitable unprofitable
indoors outdoors
manually automatically
""")
"""Opposites that the table lacks."""
