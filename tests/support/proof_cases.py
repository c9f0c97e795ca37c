"""What may hold beside what was stored, by principle, each with a true change nearby that is still recognised."""

BESIDE = {
    "a person of whom one has several": (
        [
            ("The user's friend lives in Rome.", "The user's friend lives in Paris."),
            ("The user's friend lives in Rome.", "The user's friend now lives in Paris."),
            ("A friend of Ana lives in Rome.", "A friend of Ana lives in Paris."),
            ("The client is based in Graz.", "The client is based in Wien."),
            ("The user's daughter is 3.", "The user's daughter is 7."),
            ("Ana's brother smokes.", "Ana's brother does not smoke."),
            ("Ana's older daughter studies in Graz.", "Ana's younger daughter now studies in Wien."),
        ],
        [
            ("The user's mother lives in Rome.", "The user's mother moved to Paris."),
            ("The user's friend Tom lives in Rome.", "The user's friend Tom moved to Paris."),
            ("The user's only son lives in Rome.", "The user's only son moved to Paris."),
            ("The user's eldest son lives in Rome.", "The user's eldest son moved to Paris."),
            ("The user's friend lives in Rome.", "The user's friend moved from Rome to Paris."),
        ],
    ),
    "what happens more than once": (
        [
            ("The train to Rome leaves at 8.", "The train to Rome leaves at 14."),
            ("The user has dance class on Monday.", "The user has dance class on Wednesday."),
            ("Ana's exam is on 3 May.", "Ana's exam is on 3 June."),
            ("Ana has an appointment with Dr Meier on 3 May.", "Ana has an appointment with Dr Meier on 3 June."),
            ("Ana calls her mother on Sundays.", "Ana calls her mother on Wednesdays."),
            ("Ana travels to Japan in 2026.", "Ana travels to Japan in 2027."),
        ],
        [
            ("The train to Rome leaves at 8.", "The train to Rome now leaves at 14."),
            ("Ana's exam is on 3 May.", "Ana's exam was moved to 3 June."),
            ("The standup is at 9:30.", "The standup has been pushed back to 10."),
        ],
    ),
    "an exception": (
        [
            ("Ana does not eat meat.", "Ana eats meat at Christmas."),
            ("Ana is a vegetarian.", "Ana eats meat at Christmas."),
            ("The shop is closed on Mondays.", "The shop is open on Mondays in August."),
            ("Ana cannot work Mondays.", "Ana can work Mondays in July."),
            ("The shop opens at 9.", "The shop opens at 10 in August."),
            ("The shop opens at 10 in August.", "The shop opens at 9."),
            ("The shop opens at 9 on weekdays.", "The shop now opens at 10 on Sundays."),
        ],
        [
            ("Ana does not eat meat.", "Ana eats meat again."),
            ("The shop is closed on Mondays.", "The shop is open on Mondays."),
            ("Ana's salary is 4,000 euros.", "Ana's salary was raised to 4,400 euros in March."),
        ],
    ),
    "another period": (
        [
            ("Ana read 20 books this year.", "Ana read 2 books this month."),
            ("The budget is 500 euros a month.", "The budget is 100 euros a week."),
            ("The budget is 500 euros in 2026.", "The budget is 700 euros in 2027."),
        ],
        [("The budget is 500 euros a month.", "The budget is 600 euros a month.")],
    ),
    "a word that only describes another": (
        [
            ("The user is vegan.", "The user eats vegan cheese."),
            ("The user is vegan.", "The user eats peanut butter."),
            ("The user hates olives.", "The user likes olive oil."),
            ("The user has a motorbike licence.", "The user sold the motorbike."),
            ("The office is closed.", "The office kitchen is open."),
            ("The user doesn't drink coffee.", "The user drinks decaf coffee."),
        ],
        [
            ("The user is vegan.", "The user eats cheese."),
            ("The user hates olives.", "The user likes olives."),
            ("The user has a motorbike.", "The user sold the motorbike."),
        ],
    ),
    "somebody or something of the subject": (
        [
            ("The user can not eat gluten.", "The user's guest can eat gluten."),
            ("The user does not smoke.", "The user's flatmate smokes."),
            ("The user does not smoke.", "The tenant smokes."),
            ("The user is not insured.", "The user's house is insured."),
        ],
        [("The user does not smoke.", "The user smokes.")],
    ),
    "another one beside it": (
        [
            ("Tom has a dog named Rex.", "Tom has a new dog named Bella."),
            ("Ana rents a car from Sixt.", "Ana sold her car."),
            ("Ben owns two bikes.", "Ben sold one of his bikes."),
            ("Alice teaches Bob French.", "Alice now teaches Carol Spanish."),
        ],
        [
            ("Ana owns a car.", "Ana sold her car."),
            ("The user's landlord is Mr Klein.", "The user has a new landlord, Ms Gross."),
        ],
    ),
    "another mark": (
        [
            ("Ticket 17 is open.", "Ticket 18 is closed."),
            ("Version 2.1 supports Python 3.9.", "Version 3.0 no longer supports Python 3.9."),
            ("The Python version is 3.11.", "The Node version is now 20."),
            ("Ana's India visa expires in May.", "Ana's China visa now expires in June."),
            ("The user's first choice is Oslo.", "The user's second choice is now Bergen."),
            ("The old server runs Debian.", "The new server now runs Ubuntu."),
            ("Ana's flight to Oslo is on 3 May.", "Ana's flight to Rome was moved to 12 June."),
        ],
        [
            ("Ticket 17 is open.", "Ticket 17 is closed."),
            ("The Python version is 3.11.", "The Python version is now 3.12."),
            ("Ana's India visa expires in May.", "Ana's India visa now expires in June."),
        ],
    ),
    "what was so once": (
        [
            ("Ben studied in Graz.", "Ben now studies in Wien."),
            ("Ana worked at Bosch.", "Ana now works at SAP."),
        ],
        [("Ben studies in Graz.", "Ben now studies in Wien.")],
    ),
    "a move to no other home": (
        [
            ("Ana lives in Graz.", "Ana moved in with Tom."),
            ("Ana lives in Graz.", "Ana moved to Oak Street."),
            ("Ana loves Rome.", "Ana moved from Rome to Paris."),
        ],
        [("Ana lives in Graz.", "Ana moved to Wien.")],
    ),
}
"""By principle, pairs of texts of which both stay, and pairs of which the second ends the first."""

GAVE_WAY = [
    ("The user is majoring in biology.", "The user changed their major from biology to statistics."),
    ("The CEO is Marta Ruiz.", "Ben Cole has replaced Marta Ruiz as CEO."),
    ("The user's main browser is Chrome.", "The user switched to Firefox as their main browser."),
    ("The piano is in the hall.", "The piano was moved to the attic."),
    ("Clara is dating Mateo.", "Clara and Mateo broke up."),
    ("The user wants to learn Japanese.", "The user has given up on learning Japanese."),
]
"""Changes that are proven because the new text names what gave way."""
