"""Writes examples/handover/travel.jsonl: a person plans a journey with an assistant that has few tools.

All of it is invented: the people, the hotels, the timetables and the prices. `python -m
examples.handover.write_travel` writes the session again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from examples.stage import Stage

TARGET = Path(__file__).with_name("travel.jsonl")


def search(s: Stage, text: str, query: str, rows: Sequence[str]) -> None:
    """Adds a call of the search tool, and its results."""
    found = "\n\n".join(f"{number}. {row}" for number, row in enumerate(rows, 1))
    s.called(text, "search", {"query": query}, f"{len(rows)} results for: {query}\n\n{found}")


def hold(s: Stage, text: str, what: str, until: str, reference: str, cost: str) -> None:
    """Adds a call that reserves something without paying, and its result."""
    result = (
        f"Held: {what}\nReference: {reference}\nPrice: {cost}\nThe hold ends on {until}. Nothing was paid."
    )
    s.called(text, "hold", {"what": what, "until": until}, result)


def release(s: Stage, text: str, reference: str) -> None:
    """Adds a call that gives a hold back, and its result."""
    s.called(text, "release", {"reference": reference}, f"Released: {reference}. No cost.")


def trains(day: str, start: str, end: str, rows: Sequence[tuple[str, str, str, int, str]]) -> list[str]:
    """Returns one search result per connection."""
    return [
        f"{start} – {end}, {day}: departs {leaves}, arrives {arrives} ({takes}), {changes} "
        f"{'change' if changes == 1 else 'changes'}. {remark}"
        for leaves, arrives, takes, changes, remark in rows
    ]


def place(name: str, price: int, text: str, *reviews: str) -> str:
    """Returns the search result for a place to sleep."""
    said = "\n".join(f"   Review: {review}" for review in reviews)
    return f"{name}: {price} € per night for all rooms together.\n   {text}\n{said}"


def play(s: Stage) -> None:
    """Runs the session."""
    asked(s)
    chose_a_route(s)
    looked_at_trains(s)
    looked_for_oslo(s)
    changed_the_dates(s)
    looked_for_bergen(s)
    grew_by_one(s)
    cut_the_budget(s)
    looked_at_the_fjord(s)
    dropped_an_excursion(s)
    chose_for_oslo(s)
    sorted_out_papers(s)
    shrank_again(s)
    came_back(s)
    planned_the_way_home(s)
    asked_what_is_open(s)
    packed(s)


def asked(s: Stage) -> None:
    """The person says what she wants."""
    s.user(
        "Hi! I'd like to plan a summer trip with you. I'm Marta, we live in Hamburg. With me come my daughter Ida (11) and my "
        "father Henrik (74). We want to see Oslo and Bergen and at least one fjord, by train and boat. We don't fly.\n\n"
        "The dates are 12 June to 24 June 2027. The budget is 4,200 € for everything, food included.\n\n"
        "What matters to us:\n"
        "- My father has a bad knee. Hotels must have a lift or a room on the ground floor.\n"
        "- Never more than five hours on a train without a break of at least an hour.\n"
        "- Ida and I are vegetarians, my father eats everything.\n"
        "- If a place costs more than 170 € a night, ask me first.\n"
        "- Don't book anything. You may hold things that cost nothing to cancel; I pay myself.\n"
        "- Never give our birthdays to any search or booking site."
    )
    s.say(
        "That sounds like a lovely trip, Marta. Let me repeat it, so that you can correct me before I start.\n\n"
        "**Who:** you, Ida (11) and Henrik (74).\n"
        "**When:** 12 June to 24 June 2027, twelve nights.\n"
        "**Where:** Hamburg to Oslo, Oslo to Bergen, at least one fjord, and back. No flights.\n"
        "**Money:** 4,200 € altogether. That is 350 € per night of the trip, for travel, beds and food.\n"
        "**Limits:** a lift or the ground floor; at most five hours on a train without an hour's break; places above 170 € a "
        "night only after I have asked you; I hold, you pay; no birthdays to anyone.\n\n"
        "Three things decide how the trip feels, so I would like to settle them first:\n\n"
        "1. **The way north.** By day it is Hamburg – Copenhagen (about five hours) and then Copenhagen – Oslo, either with a "
        "train through Sweden (eight to nine hours, with a change in Gothenburg) or with the night boat (about 18 hours, a cabin "
        "with beds). The boat spares Henrik's knee, and you arrive in the middle of Oslo in the morning. The train is cheaper "
        "only if all three of you sleep in Gothenburg for free, which you don't.\n"
        "2. **How many places.** Twelve nights are enough for three beds in one place each, not for six. Each move costs half a "
        "day, and a suitcase on stairs costs a knee.\n"
        "3. **Which fjord.** From Bergen you can see the Hardangerfjord in a day with a bus and a ferry. The Nærøyfjord needs a "
        "night in Flåm or Gudvangen if you don't want to sit in vehicles from seven to seven.\n\n"
        "Tell me what you think about these three, and I'll look for connections."
    )


def chose_a_route(s: Stage) -> None:
    """The person chooses."""
    s.user(
        "The night boat both ways, please, Ida has wanted that for years. Three places are right: Oslo, Bergen, and one at the "
        "fjord. I'd like Flåm. The boat must have a cabin with a window, Henrik gets anxious without one."
    )
    search(
        s,
        "I'll look for the boat first, since the rest depends on its days.",
        "night ferry Copenhagen Oslo June 2027 cabin with window three persons",
        [
            "Sundfergen, Copenhagen – Oslo, daily: leaves Copenhagen 15:00, arrives in Oslo 09:30. Cabins for three: inside 238 €, with "
            "window 312 €, large with window 398 €. Two lifts, six decks. Breakfast 14 € for adults, 7 € up to 12 years.",
            "Sundfergen, 12 June 2027: inside cabins available, cabins with window: sold out. 13 June: 4 cabins with window. 14 June: 11 "
            "cabins with window.",
            "Sundfergen, rules: free cancellation until 21 days before departure. A hold without payment lasts seven days.",
            "Sundfergen, Oslo – Copenhagen, daily: leaves Oslo 14:00, arrives in Copenhagen 09:45. The same prices. 23 June 2027: 2 cabins "
            "with window. 24 June: 9 cabins with window.",
            "Travel forum, 'Night boat with a child': the pool on deck 4 is for children from 6 years, until 20:00. Earplugs near the stern.",
        ],
    )
    s.say(
        "The boat of 12 June has no cabin with a window left, and you said that Henrik needs one. So I didn't hold anything yet. "
        "The choices are:\n\n"
        "| boat north | cabin with window | what it means |\n"
        "|---|---|---|\n"
        "| 12 June | sold out | only an inside cabin (238 €) |\n"
        "| 13 June | 4 left, 312 € | one night in Copenhagen or a day later from Hamburg |\n"
        "| 14 June | 11 left, 312 € | two days later |\n\n"
        "For the way back, a boat on 23 June brings you to Copenhagen on 24 June at 09:45, and to Hamburg on the same afternoon: "
        "two cabins with a window are left for that day. A boat on 24 June means that you're at home on 25 June.\n\n"
        "I would take 13 June: leave Hamburg early on the 13th, be in Copenhagen at noon, and board at two. It needs the five hours "
        "on the train in one piece, which is exactly your limit. Or you leave on the 12th, and sleep in Copenhagen."
    )
    s.user(
        "13 June with the early train is fine, as long as the train is under five hours. Hold the cabin there. For the return hold "
        "23 June before the last two are gone."
    )
    hold(
        s,
        "",
        "Sundfergen Copenhagen – Oslo, 13 June 2027, cabin with window, 3 persons",
        "20 February 2027",
        "SF-40817",
        "312 €",
    )
    hold(
        s,
        "",
        "Sundfergen Oslo – Copenhagen, 23 June 2027, cabin with window, 3 persons",
        "20 February 2027",
        "SF-40822",
        "312 €",
    )
    s.say(
        "Both cabins are held: SF-40817 (north, 13 June) and SF-40822 (back, 23 June), 312 € each, nothing paid. The holds end on 20 "
        "February. Next I'll look for the train to Copenhagen."
    )


def looked_at_trains(s: Stage) -> None:
    """The trains between the cities."""
    search(
        s,
        "",
        "train Hamburg Copenhagen Sunday 13 June 2027 morning",
        trains(
            "13 June 2027",
            "Hamburg",
            "Copenhagen",
            [
                (
                    "05:53",
                    "10:39",
                    "4 h 46 min",
                    0,
                    "Quiet car, step-free car 21. From 29.90 € for adults, children under 12 free.",
                ),
                (
                    "07:53",
                    "12:39",
                    "4 h 46 min",
                    0,
                    "Nearly full in June; seats must be reserved (4.50 € each).",
                ),
                (
                    "09:53",
                    "14:51",
                    "4 h 58 min",
                    1,
                    "Change in Fredericia, 9 minutes, other platform by stairs or lift.",
                ),
                ("11:53", "16:39", "4 h 46 min", 0, "Arrives after the boat has left."),
            ],
        ),
    )
    search(
        s,
        "",
        "train Oslo Bergen June 2027 stop Myrdal Flåm connection",
        [
            *trains(
                "daily in June 2027",
                "Oslo",
                "Bergen",
                [
                    (
                        "06:23",
                        "13:04",
                        "6 h 41 min",
                        0,
                        "Stops in Myrdal at 11:01. Family car with a small playroom, car 7.",
                    ),
                    (
                        "08:25",
                        "14:57",
                        "6 h 32 min",
                        0,
                        "Stops in Myrdal at 12:52. Family car, car 7. From 39 € for adults, 19 € for children.",
                    ),
                    ("12:03", "18:51", "6 h 48 min", 0, "Stops in Myrdal at 16:40."),
                    ("16:02", "22:36", "6 h 34 min", 0, "No playroom. Stops in Myrdal at 20:29."),
                ],
            ),
            "Flåm line: Myrdal – Flåm, ten trains per day in June, 57 minutes, 43 € for adults, 22 € for children. First train from Myrdal 09:36, "
            "last 20:58. In Myrdal one changes on the same platform.",
            "Express boat Flåm – Bergen, daily from 1 May to 30 September: leaves Flåm 15:30, arrives in Bergen 20:45. 98 € for adults, 49 € up to "
            "15 years. Lift on board: no. The lounge is on the deck of the entrance.",
            "Fjord boat Flåm – Gudvangen through the Nærøyfjord: 2 hours, 68 € for adults, 34 € for children. The ramps are step-free. Bus from "
            "Gudvangen back to Flåm every hour, 20 minutes.",
        ],
    )
    s.say(
        "This works well, because your fjord place lies between the two cities. You never need the 6½ hours from Oslo to Bergen in one "
        "piece, which would break your rule of five hours.\n\n"
        "**Hamburg – Copenhagen, 13 June:** the 07:53 arrives at 12:39 (4 h 46 min, no change). The boat wants you at the terminal by "
        "14:15, and a bus needs 15 minutes. The 05:53 gives you two hours more, but it means getting up at half past four with a child. I "
        "would take the 07:53 and reserve seats as soon as sales open, which is usually in April.\n\n"
        "**Oslo – Flåm:** the 08:25 reaches Myrdal at 12:52 (4 h 27 min), then the Flåm line at 13:10, on the same platform. You're in Flåm "
        "shortly after two. Car 7 has the playroom; Ida may be too old for it, but the seats there are at tables.\n\n"
        "**Flåm – Bergen:** either the express boat (5 h 15 min, you see the Sognefjord, 98 € and 49 €) or the Flåm line and the train "
        "(about 3½ hours, cheaper by 90 € for all three). A boat is no train, so your rule about breaks doesn't apply to it as you "
        "put it. Still: five hours of sitting may be long for Henrik.\n\n"
        "**Bergen – Oslo, on the way back:** here is the only problem. The train needs 6½ hours. With your rule, you would have to get out in "
        "the middle: in Finse or Geilo, both have a café at the station, and the next train comes two to four hours later. Or you "
        "sleep in Geilo for a night.\n\n"
        "Which way do you want to take from Flåm to Bergen, and where do you want to break the journey back?"
    )
    s.user(
        "Express boat, definitely. For the way back: a break in Finse sounds wonderful, my father was there as a young man. But if the "
        "weather forecast is bad for that day, ask me before you plan more than an hour there. The restaurant in Finse should have something "
        "vegetarian."
    )
    search(
        s,
        "",
        "Finse station café vegetarian lunch step-free June",
        [
            "Finse Stasjonskafé: in the station building, open 10:00 – 17:00 from 1 June. Vegetable soup, waffles, a dish of the day without meat. "
            "Three steps at the front, ramp at the platform side.",
            "Trains Bergen – Oslo in June 2027 with Finse: Bergen 07:57 – Finse 10:16 – Oslo 14:25; Bergen 11:59 – Finse 14:19 – Oslo 18:31; "
            "Bergen 15:57 – Finse 18:14 – Oslo 22:23.",
            "Hiking forum: in the middle of June there is often snow around Finse. The path along the lake is usually free and flat for 800 m.",
        ],
    )
    s.say(
        "Finse works: take the 07:57 from Bergen, be in Finse at 10:16, have lunch (the café has dishes without meat, and a ramp at the platform "
        "side), and take the next train at 14:19. You're in Oslo at 18:31. Both parts are shorter than 4½ hours. Four hours in Finse is long if "
        "it rains, so I noted your condition: with a bad forecast I ask you first. The other choice would then be to get out in Geilo.\n\n"
        "That means you arrive in Oslo on the evening before the boat, so you need one more night in Oslo at the end. The plan with nights:\n\n"
        "| nights | place |\n"
        "|---|---|\n"
        "| 13 June | on the boat |\n"
        "| 14 – 16 June | Oslo (3) |\n"
        "| 17 – 18 June | Flåm (2) |\n"
        "| 19 – 21 June | Bergen (3) |\n"
        "| 22 June | Oslo (1) |\n"
        "| 23 June | on the boat |\n\n"
        "Shall I look for beds in Oslo?"
    )


def looked_for_oslo(s: Stage) -> None:
    """Beds in Oslo."""
    s.user(
        "Yes. Near the station or near a tram, please, quiet, and with breakfast. One family room or two rooms next to each other."
    )
    search(
        s,
        "",
        "hotel Oslo family room lift breakfast quiet near central station 14-17 June 2027",
        [
            place(
                "Hotell Bjerka",
                164,
                "Family room for three, courtyard side. Lift. Breakfast included. 450 m from the central station. Free cancellation until 3 days before.",
                "Quiet in spite of the place. The lift is small, a wheelchair just fits.",
                "Good breakfast, with oat milk and three warm dishes without meat.",
            ),
            place(
                "Pensjonat Løkka 12",
                119,
                "Two rooms on the second floor, shared bathroom. No lift. Breakfast 12 € each. Tram at the door.",
                "Charming house, steep stairs.",
            ),
            place(
                "Havnehotellet Oslo",
                211,
                "Two connected rooms with a view of the harbour. Lift. Breakfast included. Next to the ferry terminal.",
                "We heard the bar until two at night.",
                "Perfect for the boat: five minutes with suitcases.",
            ),
            place(
                "Sentrum Leiligheter",
                148,
                "Flat with kitchen, sleeps four, fourth floor with lift. No breakfast. Supermarket in the house. Minimum stay three nights.",
                "Clean, and the kitchen saved us a lot of money.",
                "The key box was hard to find.",
            ),
            place(
                "Vika Gjestehus",
                157,
                "Family room on the ground floor, breakfast included, tram 200 m. The street is loud until 23:00.",
                "The owner is very kind. Bring earplugs for Friday night.",
            ),
        ],
    )
    s.say(
        "Five places, of which three fit your rules:\n\n"
        "- **Hotell Bjerka**, 164 €: family room to the courtyard, lift, breakfast with warm dishes without meat, 450 m from the station. It's below "
        "your limit of 170 €, so I may hold it without asking.\n"
        "- **Sentrum Leiligheter**, 148 €: a flat with a kitchen and lift, but no breakfast, and at least three nights.\n"
        "- **Vika Gjestehus**, 157 €: ground floor, but loud until eleven. You asked for quiet, so only if the others are gone.\n\n"
        "Not suitable: Pensjonat Løkka 12 has stairs and no lift. Havnehotellet costs 211 €, above your limit, and one guest heard the bar until two.\n\n"
        "I recommend Bjerka for both stays in Oslo. Three nights are 492 €, and the single night at the end another 164 €."
    )
    s.user("Bjerka. Hold 14 to 17 June and 22 to 23 June.")
    hold(
        s,
        "",
        "Hotell Bjerka, family room, 14–17 June 2027, 3 nights, breakfast",
        "1 March 2027",
        "BJ-2231",
        "492 €",
    )
    hold(
        s,
        "",
        "Hotell Bjerka, family room, 22–23 June 2027, 1 night, breakfast",
        "1 March 2027",
        "BJ-2232",
        "164 €",
    )
    s.say(
        "Held: BJ-2231 (three nights, 492 €) and BJ-2232 (one night, 164 €). Both can be cancelled until three days before arrival."
    )


def changed_the_dates(s: Stage) -> None:
    """The dates move by a week."""
    s.user(
        "Bad news: Ida's school has moved the holidays. We can't leave before Saturday, 19 June. So the new dates are 19 June to 1 July 2027. "
        "Please change the holds, and tell me what is no longer possible."
    )
    release(s, "I'll give back the old holds and look for the new days. The boat first.", "SF-40817")
    release(s, "", "SF-40822")
    search(
        s,
        "",
        "Sundfergen Copenhagen Oslo 19 June 2027 and Oslo Copenhagen 29 June 30 June 2027 cabin with window",
        [
            "Sundfergen, Copenhagen – Oslo, 19 June 2027: 6 cabins with window, 329 €. 20 June: 8 cabins with window, 329 €.",
            "Sundfergen, Oslo – Copenhagen, 29 June 2027: cabins with window sold out. 30 June: 5 cabins with window, 329 €. 1 July: 7, 345 €.",
            "Sundfergen: from 18 June the summer prices apply.",
        ],
    )
    hold(
        s,
        "",
        "Sundfergen Copenhagen – Oslo, 19 June 2027, cabin with window, 3 persons",
        "27 February 2027",
        "SF-41190",
        "329 €",
    )
    hold(
        s,
        "",
        "Sundfergen Oslo – Copenhagen, 30 June 2027, cabin with window, 3 persons",
        "27 February 2027",
        "SF-41193",
        "329 €",
    )
    release(s, "", "BJ-2231")
    release(s, "", "BJ-2232")
    hold(
        s,
        "",
        "Hotell Bjerka, family room, 20–23 June 2027, 3 nights, breakfast",
        "1 March 2027",
        "BJ-2260",
        "492 €",
    )
    hold(
        s,
        "",
        "Hotell Bjerka, family room, 29–30 June 2027, 1 night, breakfast",
        "1 March 2027",
        "BJ-2261",
        "164 €",
    )
    s.say(
        "Everything is moved. The old references (SF-40817, SF-40822, BJ-2231, BJ-2232) are given back; please forget them.\n\n"
        "| what | new day | reference | price |\n"
        "|---|---|---|---|\n"
        "| boat north | 19 June, 15:00 | SF-41190 | 329 € |\n"
        "| Hotell Bjerka, 3 nights | 20 – 23 June | BJ-2260 | 492 € |\n"
        "| Hotell Bjerka, 1 night | 29 – 30 June | BJ-2261 | 164 € |\n"
        "| boat back | 30 June, 14:00 | SF-41193 | 329 € |\n\n"
        "What changed: the boats cost 17 € more each way, since the summer prices apply from 18 June. And 29 June was sold out with a window, so the boat "
        "back is on 30 June. You arrive in Hamburg on 1 July, in the afternoon, as you wanted.\n\n"
        "The nights in between are now: Flåm 23 – 25 June, Bergen 25 – 29 June. That gives Bergen four nights instead of three. The train to Copenhagen "
        "is the 07:53 on Saturday, 19 June."
    )


def looked_for_bergen(s: Stage) -> None:
    """Beds in Bergen and Flåm."""
    s.user(
        "Good. Now Bergen, 25 to 29 June, and Flåm, 23 to 25 June. Same wishes. In Bergen I'd love a washing machine."
    )
    search(
        s,
        "",
        "Bergen family room or flat washing machine lift 25-29 June 2027 three persons",
        [
            place(
                "Bryggen Familiehotell",
                189,
                "Family room, lift, breakfast included, laundry room on the first floor. 100 m from the old harbour.",
                "Loud on Saturday, otherwise very good.",
            ),
            place(
                "Nordnes Leiligheter",
                152,
                "Flat with two bedrooms on the ground floor, kitchen, washing machine. Quiet street, 900 m from the boat, bus 11. Free cancellation until 14 days before.",
                "Two steps at the entrance, the landlady lends a ramp.",
                "We cooked every day. There is a playground next door, and the sea pool is three minutes away.",
            ),
            place(
                "Fløyen Gjestegård",
                138,
                "Two rooms on the first floor, no lift, breakfast included. Beautiful garden. 60 steps from the street.",
                "The steps! But what a view.",
            ),
            place(
                "Hotell Strandkanten",
                168,
                "Two connected rooms, lift, breakfast included. Washing machine for guests, 6 €. 400 m from the station.",
                "Trains at night, on the track side.",
            ),
        ],
    )
    search(
        s,
        "",
        "Flåm hotel cabin ground floor vegetarian 23-25 June 2027 three persons",
        [
            place(
                "Flåmsbrygga Rom",
                226,
                "Family room with balcony to the fjord, lift, breakfast included, next to the boat.",
                "Expensive, but we would do it again.",
            ),
            place(
                "Brekke Hytter",
                116,
                "Wooden cabin at ground level, two bedrooms, kitchen, 1.4 km from the station, flat path along the river. Bed linen 9 € each.",
                "Kettle, fridge, two hot plates. The farm sells eggs and bread.",
                "No shop on Sunday.",
            ),
            place(
                "Aurland Fjordpensjonat",
                163,
                "Two rooms on the ground floor, half board, also vegetarian. In Aurland, 9 km from Flåm; bus six times per day.",
                "The best food of our trip.",
            ),
        ],
    )
    s.say(
        "**Bergen.** My favourite is Nordnes Leiligheter (152 €): ground floor, a washing machine, quiet, a kitchen. The two steps at the entrance have a "
        "ramp on request. Hotell Strandkanten (168 €) has breakfast and a lift, but the trains can be heard. Bryggen Familiehotell costs 189 €, above "
        "your limit, so I'd only ask for it if you wanted the old harbour at your door. Fløyen Gjestegård has sixty steps, which rules it out.\n\n"
        "**Flåm.** Flåmsbrygga Rom (226 €) is far above your limit. Should I ask the question that you wanted to be asked? It is directly at the boat, and it "
        "would be 452 € for two nights. Brekke Hytter (116 €) is a cabin at ground level with a flat path of 1.4 km; with luggage you'd want the "
        "taxi (about 15 €). Aurland Fjordpensjonat (163 €, half board included, also vegetarian) is 9 km away by bus.\n\n"
        "If I count the food, Aurland is the cheapest: dinner for three in Flåm is rarely below 75 €."
    )
    s.user(
        "Nordnes for Bergen, with the ramp please. For Flåm: no to Flåmsbrygga, that's too much. Take Aurland, the food decides it. Hold both."
    )
    hold(
        s,
        "",
        "Nordnes Leiligheter, flat with two bedrooms, 25–29 June 2027, 4 nights, ramp at the entrance",
        "5 March 2027",
        "NL-0717",
        "608 €",
    )
    hold(
        s,
        "",
        "Aurland Fjordpensjonat, two rooms on the ground floor, half board, 23–25 June 2027, 2 nights",
        "5 March 2027",
        "AU-118",
        "326 €",
    )
    s.say(
        "Held: NL-0717 (Nordnes Leiligheter, 608 € for four nights, the ramp is noted) and AU-118 (Aurland Fjordpensjonat, 326 € for two nights with half "
        "board). The deadline for cancelling Nordnes is 14 days before, so 11 June.\n\n"
        "The plan as it is now:\n\n"
        "- [x] Boat north and back\n"
        "- [x] Beds in Oslo\n"
        "- [x] Beds in Bergen and Aurland\n"
        "- [ ] Seats on the 07:53 to Copenhagen, as soon as sales open in April\n"
        "- [ ] Train Oslo – Myrdal and the Flåm line on 23 June\n"
        "- [ ] Express boat Flåm – Bergen on 25 June\n"
        "- [ ] Train Bergen – Finse – Oslo on 29 June\n"
        "- [ ] Train Copenhagen – Hamburg on 1 July\n"
        "- [ ] Ask the doctor for Henrik's certificate for the step-free seats\n\n"
        "So far 2,248 € are held: 658 € for the boats, 656 € for Oslo, 608 € for Bergen, 326 € for Aurland. Of 4,200 €, 1,952 € are left for trains, the express "
        "boat, food and entrance fees."
    )


def grew_by_one(s: Stage) -> None:
    """A fourth traveller joins."""
    s.user(
        "A surprise: my brother Jonas wants to come along. So we're four now. He'd share a room with my father. He can pay his part, so the budget becomes "
        "5,300 €. Can everything take four?"
    )
    search(
        s,
        "I'll check each hold for four persons before I change anything.",
        "cabin four persons with window Sundfergen 19 June 30 June 2027; Hotell Bjerka four persons; Nordnes Leiligheter beds; Aurland Fjordpensjonat beds",
        [
            "Sundfergen: cabins with window have at most three beds. Large cabin with window, four beds: 19 June 3 left (418 €), 30 June 1 left (418 €).",
            "Hotell Bjerka: a family room sleeps three. A second room, single, same floor: 92 € per night.",
            "Nordnes Leiligheter: two bedrooms with two beds each, four persons: the same price.",
            "Aurland Fjordpensjonat: two rooms on the ground floor, two beds each, half board for a fourth person 48 € per night.",
        ],
    )
    s.say(
        "It's possible, but not everywhere for the same price:\n\n"
        "- **Boats:** the large cabin with a window has four beds, 418 € each way instead of 329 €. For 30 June only one is left.\n"
        "- **Hotell Bjerka:** needs a second room, 92 € per night. Together that is 256 € a night, above your limit of 170 €. So I ask you, as you wanted.\n"
        "- **Nordnes:** four beds, the same price.\n"
        "- **Aurland:** four beds, 48 € per night more for the half board.\n\n"
        "Altogether Jonas adds 178 € for the boats, 368 € in Oslo and 96 € in Aurland: 642 € without trains and food. Shall I change the holds, Oslo included?"
    )
    s.user(
        "Change the boats, please, before the last large cabin is gone. For Oslo wait: Jonas may sleep at a friend's there. My father snores, by the way. Whoever "
        "shares with him needs earplugs."
    )
    release(s, "", "SF-41190")
    hold(
        s,
        "",
        "Sundfergen Copenhagen – Oslo, 19 June 2027, large cabin with window, 4 persons",
        "27 February 2027",
        "SF-41302",
        "418 €",
    )
    release(s, "", "SF-41193")
    hold(
        s,
        "",
        "Sundfergen Oslo – Copenhagen, 30 June 2027, large cabin with window, 4 persons",
        "27 February 2027",
        "SF-41303",
        "418 €",
    )
    s.say(
        "Done: SF-41302 (19 June) and SF-41303 (30 June), large cabins with a window, 418 € each. In Oslo I wait for what Jonas says. Earplugs go onto the packing list."
    )


def cut_the_budget(s: Stage) -> None:
    """The budget shrinks."""
    s.user(
        "I went through our money yesterday. The car needs a new gearbox. The budget is 3,600 € for Ida, my father and me; Jonas pays for himself, so don't count him. "
        "Where can we save? I don't want to lose the boat, and not Finse."
    )
    s.say(
        "Let me first count what the three of you need, without Jonas's part.\n\n"
        "| what | now | could be |\n"
        "|---|---|---|\n"
        "| boats, three quarters of the large cabins | 627 € | 476 € with inside cabins, but Henrik needs a window: no |\n"
        "| Oslo, 4 nights at 164 € | 656 € | 592 € in Sentrum Leiligheter (148 €), but it wants three nights at least |\n"
        "| Aurland, 2 nights with half board | 326 € | 232 € in Brekke Hytter, without food |\n"
        "| Bergen, 4 nights | 608 € | 608 € |\n"
        "| trains Hamburg – Copenhagen and back | about 130 € | 130 € if you book on the first day |\n"
        "| Oslo – Myrdal – Flåm | about 205 € | 205 € |\n"
        "| express boat | 245 € | 155 € by train instead |\n"
        "| Bergen – Finse – Oslo | about 110 € | 110 € |\n"
        "| food outside of half board and breakfast, 9 days | about 540 € | 430 € with cooking in Bergen |\n"
        "| museums, Fløyen, fjord boat | about 290 € | 180 € |\n"
        "| **sum** | **3,737 €** | |\n\n"
        "So you're 137 € above 3,600 €. These are the savings that take nothing from you that you called important:\n\n"
        "1. **Cook in Bergen.** The flat has a kitchen. Four dinners at home save about 110 €.\n"
        "2. **One museum less in Oslo.** The city card pays only from the third museum on. With two museums and the open-air sculpture park (free) you save about 60 €.\n"
        "3. **The shorter fjord boat.** You see the Nærøyfjord on the boat to Gudvangen in two hours. The trip with a farm visit costs 40 € more per adult, "
        "and Henrik would have to climb into a bus four times.\n\n"
        "With 1 and 2 you're at about 3,567 €, with 33 € to spare. I would keep the express boat: you chose it 'definitely', and it's the view that people travel there for."
    )
    s.user(
        "1 and 2, agreed. Keep the express boat. And from now on: if anything costs more than 50 € extra, ask me first, whatever it is."
    )
    s.say(
        "Noted: cooking in Bergen, two museums in Oslo, the express boat stays, and anything above 50 € extra only after I have asked. The budget is 3,600 € for you, Ida and "
        "Henrik; Jonas pays his own part."
    )


def looked_at_the_fjord(s: Stage) -> None:
    """What to do near the fjord and in Bergen."""
    s.user(
        "What can we do in Aurland on 24 June, our only whole day there? Ida loves animals and is bored by views, my father loves views and can walk one kilometre at most."
    )
    search(
        s,
        "",
        "Aurland Flåm things to do with child animals short walk viewpoint bus June",
        [
            "Stegastein viewpoint: bus from Aurland, 25 minutes, four per day, 32 € for adults, 16 € for children. 200 m from the bus to the platform, step-free.",
            "Undredal: village with a goat dairy. Tasting 14 €, children 7 €. Boat from Flåm, 25 minutes. Goats can be fed at 11:00 and 15:00 in June. The path from the "
            "quay is 300 m, slightly uphill.",
            "Otternes farm: 27 old houses on a hill, guided tour 12 €. 1 km from the road on a gravel path, steep.",
            "Nærøyfjord boat: Flåm – Gudvangen, 2 hours, 68 € for adults, 34 € for children. Seals are often seen near Dyrdal.",
            "Aurland swimming place: sandy, 10 minutes from the church, water 14 °C in June.",
            "Weather service, climate of Aurland in late June: 11 to 19 °C, rain on 13 of 30 days.",
        ],
    )
    s.say(
        "Then the day needs two halves: goats for Ida and a view for Henrik, with little walking.\n\n"
        "**Morning: Undredal.** Take the bus at 09:40 to Flåm and the boat at 10:15; you're in Undredal at 10:40. Feeding the goats is at 11:00. The path from the quay is 300 m, "
        "slightly uphill, which Henrik can do slowly. After it there is the tasting of brown cheese (14 € and 7 €), which is vegetarian, but ask about the rennet if that matters to you.\n\n"
        "**Afternoon: Stegastein.** The bus at 14:20 from Aurland goes up to the viewpoint; the platform is 200 m from the bus and has no steps. The 25 minutes up are steep and full of bends. "
        "If Ida gets sick on such roads, she should sit in front.\n\n"
        "**Cost:** boat to Undredal about 60 €, tasting 35 €, Stegastein 80 €: 175 € for the three of you. In the table I had counted 170 € for the Nærøyfjord boat, "
        "so it is about the same, if you leave that boat out. On the express boat to Bergen you see the Sognefjord anyway, but not the Nærøyfjord.\n\n"
        "Otternes I'd leave out: 1 km of steep gravel is too much for the knee. Do you want goats and viewpoint, or the Nærøyfjord boat?"
    )
    s.user(
        "Goats and viewpoint! Ida gets sick in buses, so she needs the front seat and her tablets. Her doctor says one tablet an hour before, never two."
    )
    s.say(
        "Goats and viewpoint it is, without the Nærøyfjord boat. For Ida: front seat, one tablet an hour before the bus, never two. For the 14:20 that is at 13:20, and for the 09:40 at 08:40; "
        "that would be two tablets on one day, so please ask her doctor whether that is fine. I put it onto the list."
    )
    s.user("And Bergen, with four whole evenings? We need rain plans. It rains there, I hear.")
    search(
        s,
        "",
        "Bergen with child and grandfather rain indoor aquarium Fløibanen prices 2027 step-free",
        [
            "Bergen aquarium: on Nordnes, 10 minutes on foot from the sea pool. 29 € for adults, 18 € up to 15 years. Penguins are fed at 12:00 and 15:00. Step-free.",
            "Fløibanen: funicular to 320 m, 17 € return for adults, 8 € for children. Step-free. Queues between 10:00 and 14:00 if ships are in the harbour.",
            "Science centre VilVite: 24 € for adults, 19 € for children, closed on Mondays.",
            "Fish market: mostly tourists; vegetarian dishes are rare. The food hall next to it has two vegetarian stalls.",
            "Leprosy museum: small, quiet, 13 €, children free. Stairs to the upper floor.",
            "Ulriken cable car: 37 € return for adults, 24 € for children. Closed in strong wind.",
        ],
    )
    s.say(
        "It does rain there, on about every second day in June. So I'd plan by weather and not by day:\n\n"
        "| weather | what | cost for three |\n"
        "|---|---|---|\n"
        "| rain | aquarium on Nordnes, ten minutes from your flat, penguins at 12:00 and 15:00 | 76 € |\n"
        "| rain | science centre VilVite, not on Monday, 28 June | 67 € |\n"
        "| dry | Fløibanen before ten or after four, because of the queues; goats live on the top, too | 42 € |\n"
        "| dry | the sea pool on Nordnes and the playground next to the flat | free to 15 € |\n"
        "| any | food hall next to the fish market: two vegetarian stalls, fish for Henrik | about 50 € |\n\n"
        "The aquarium costs 76 €. That isn't extra, because I had counted 290 € minus 60 € for such things, but it's more than 50 € in one go, so I mention it. With Undredal and Stegastein (175 €), "
        "the aquarium or VilVite, not both, stays within the budget.\n\n"
        "Ulriken I would leave out: 98 € for the three of you, and it closes in wind. Fløyen shows you nearly the same."
    )
    s.user(
        "The aquarium, then, and Fløyen. No VilVite. Henrik would like to hear an organ or a choir in Bergen, if it's free or cheap. That's a wish, not a must."
    )
    search(
        s,
        "",
        "Bergen organ concert choir June 26 27 28 2027 free entrance",
        [
            "Bergen cathedral: organ at noon, Saturdays in June, free entrance, 30 minutes. 26 June: Bach and Nystedt.",
            "Johanneskirken: many steps from the street. Choir on 27 June, 19:00, 20 €.",
            "Korskirken: open rehearsal of a youth choir, Mondays 17:30, free entrance, step-free by the side door.",
        ],
    )
    s.say(
        "There are two free chances without stairs: the organ in the cathedral on Saturday, 26 June, at noon (30 minutes), and the open rehearsal of a youth choir in Korskirken on Monday, 28 June, at 17:30, "
        "through the side door. Johanneskirken has many steps and costs 20 €. I'd plan the cathedral, and keep Monday in mind."
    )


def chose_for_oslo(s: Stage) -> None:
    """What to see and where to eat in Oslo."""
    s.user(
        "Oslo next. Three days, two museums as agreed. Ida is mad about ships, my father was a carpenter. And where can we eat without meat and without getting poor?"
    )
    search(
        s,
        "",
        "Oslo museums ships wood craft family ticket step-free 2027",
        [
            "Polar ship museum on Bygdøy: a whole ship in a hall, visitors walk through it. Family ticket 38 €. A lift leads to the upper gallery; inside the ship are steep ladders. Bus 30 or boat 91.",
            "Open-air folk museum on Bygdøy: 160 wooden houses, a stave church of about 1200, carpenters at work on weekdays from 11:00 to 15:00. Family ticket 44 €. Paths of gravel, mostly flat; wheelchairs and folding stools are lent free of charge.",
            "Maritime museum on Bygdøy: models and small boats, family ticket 31 €. Step-free. Closed until 30 June 2027 for building work.",
            "National museum, at the harbour: art and design, 20 € for adults, children free. Step-free, quiet in the morning.",
            "Raft museum on Bygdøy: two rafts, 16 € for adults, 7 € for children. Small, one hour is enough. Step-free on the ground floor.",
            "City card Oslo: 24 hours 52 €, 48 hours 76 € for adults, half for children. Includes buses, trams, the harbour boats and 30 museums.",
            "Harbour boat 91 to Bygdøy: every 20 minutes from the town hall, from April to October. 6 € each way, children 3 €. Ramp without steps at low water only.",
        ],
    )
    search(
        s,
        "",
        "Oslo vegetarian restaurant cheap family near central station Bygdøy lunch",
        [
            "Grønn Gryte: buffet by weight, only vegetarian, 400 m from the station. Lunch about 14 € per person. Closed on Sundays.",
            "Mathallen Vulkan: hall with 30 stalls, eight of them with vegetarian dishes, 11 to 19 € per dish. Tram 12. Benches without backs.",
            "Café of the folk museum: waffles 7 €, vegetable stew 15 €, sausages. Open until 16:00.",
            "Tandoor Hjørnet: Indian, many dishes without meat, 16 to 22 €, children's portions for 9 €. Open every day.",
            "Kafé Kajen at the town hall: fish soup, pizza, terrace. 18 to 27 €.",
        ],
    )
    s.say(
        "With ships for Ida and wood for Henrik, the two museums choose themselves: the polar ship museum (38 €) and the open-air folk museum (44 €). Both are on Bygdøy, so one trip with bus 30 "
        "serves both. The maritime museum is closed until 30 June, so it is no question.\n\n"
        "**Monday, 21 June: Bygdøy.** Bus 30 from the station at about 09:40; it has low floors, while the ramp of the boat is only step-free at low water. First the folk museum at ten, when it is empty. The carpenters work "
        "on weekdays from 11:00, so Henrik sees them before lunch. The museum lends folding stools, which I would take, since there is a bench only every 200 m or so. Lunch in the café: stew for you and Ida, a sausage for Henrik, "
        "about 45 €. In the afternoon the polar ship: Ida can climb the ladders inside, Henrik takes the lift to the gallery and looks down on her.\n\n"
        "**Sunday, 20 June, the day of arrival:** the boat arrives at 09:30 and the room is ready at 15:00. Bjerka keeps suitcases. The sculpture park is free, flat, and reached by tram 12 without a change. "
        "Grønn Gryte is closed on Sundays, so eat at Mathallen or at Tandoor Hjørnet, which has children's portions.\n\n"
        "**Tuesday, 22 June:** nothing fixed. If it's warm, the island Hovedøya with a beach (boat from the town hall, 10 minutes). If it rains, the national museum would be a third museum, 40 € for you and Henrik. We agreed on two, so only if you "
        "want it.\n\n"
        "**City card or not?** For two museums and three bus trips you'd pay about 115 € singly. The 24-hour card for all three is 130 €. So no card.\n\n"
        "Altogether that is 82 € for the museums, about 30 € for buses and trams, and for food about 60 € a day if you eat warm once."
    )
    s.user(
        "Perfect, that's the plan for Oslo. Only swap: Bygdøy on Tuesday the 22nd and the free day on Monday. A friend of my father's, Solveig, wants to meet us on Monday at four in the sculpture park."
    )
    s.say(
        "Swapped: Bygdøy with both museums is on Tuesday, 22 June; Monday, 21 June is free, with Solveig at four in the sculpture park. Then I'd leave the park out on Sunday and walk along the harbour instead: it's flat, there are benches, and it's "
        "ten minutes from Bjerka. The carpenters work on Tuesday, too."
    )


def sorted_out_papers(s: Stage) -> None:
    """Papers, insurance and names."""
    s.user(
        "Papers: what do we need? We're all German citizens, Ida has a child's passport until August 2027, my father only an identity card. And is our health insurance enough? He takes blood thinners."
    )
    search(
        s,
        "",
        "Norway Denmark entry German citizens identity card child passport health insurance card cover rescue",
        [
            "Entry to Norway: identity card or passport, valid for the time of the stay. Children need a document of their own. The ferry lines check documents at the terminal.",
            "European health insurance card: valid in Norway and Denmark. It covers treatment in public hospitals and by doctors with a contract, with the same co-payment as residents. It does not cover transport back home.",
            "Co-payment for a doctor's visit in Norway: about 20 to 35 €, children under 16 nothing. A summary of the diagnoses in English helps.",
            "Travel insurance, comparison: families from 24 € for two weeks; people above 70 years from 39 €, conditions known before are often excluded. Transport home included in most.",
            "Medicines: for personal use for up to three months may be brought along, in the original box, with a doctor's letter for strong medicines. Blood thinners need no permission.",
        ],
    )
    s.say(
        "**Documents.** An identity card is enough for Henrik, a passport for Ida: hers is valid until August, which covers 1 July. Check that Ida's photo still looks like her; a child's passport from years ago is sometimes looked at twice. If you have a "
        "different surname than Ida, take a copy of her birth certificate along. That stays in your bag: I don't need it, and I give no birthdays to anybody.\n\n"
        "**Health.** Your European card is on the back of the German insurance card and is valid in both countries. Children under 16 pay nothing at the doctor's, adults 20 to 35 €. What it does not cover is the transport home, and with blood thinners and a bad knee "
        "that is the one thing worth paying for. A travel insurance for a family is about 24 €, for Henrik from 39 €. Read what it says about conditions that were known before: it often excludes exactly the knee and the heart.\n\n"
        "**Medicines.** Blood thinners need no permission. Keep them in the original box and in the hand luggage, enough for four days more than the trip. A page in English with the name of the medicine, the dose and the practice's number costs little and saves hours.\n\n"
        "**Money.** Nearly everything in Norway is paid by card, also the toilet in Finse. You need no cash, except perhaps 20 € in crowns for the farm's eggs.\n\n"
        "Under which names are the holds to be? The ferry wants the names as they are in the documents. I have used 'Marta, Ida and Henrik Lindner' so far, from your first mail address."
    )
    s.user(
        "Careful: Ida and I are Lindner, but my father is Henrik Vogt. Please correct that in all holds, the names must be as in the documents. And I take the insurance for Henrik, up to 45 €."
    )
    s.called(
        "",
        "rename",
        {"references": ["SF-41302", "SF-41303"], "passenger": "Henrik Lindner", "name": "Henrik Vogt"},
        "Changed: passenger Henrik Vogt in SF-41302 and SF-41303. No cost.",
    )
    s.say(
        "Corrected: Henrik Vogt in both boat holds. The hotels and flats only have your name, Marta Lindner, so nothing is to be changed there. I noted: insurance for Henrik with transport home, at most 45 €, which you buy yourself because it asks for his birthday."
    )


def planned_the_way_home(s: Stage) -> None:
    """The way home, and what to do if it rains in Finse."""
    s.user(
        "The way home: the boat is in Copenhagen at 09:45 on 1 July. I promised my father an hour at the harbour there. When do we get home, and what does it cost? And what's the plan B for Finse, so that I know it?"
    )
    search(
        s,
        "",
        "train Copenhagen Hamburg Thursday 1 July 2027",
        trains(
            "1 July 2027",
            "Copenhagen",
            "Hamburg",
            [
                ("09:26", "14:12", "4 h 46 min", 0, "Leaves before the boat arrives."),
                (
                    "11:26",
                    "16:12",
                    "4 h 46 min",
                    0,
                    "Seats must be reserved, 4.50 € each. From 29.90 € for adults, children under 12 free.",
                ),
                (
                    "13:26",
                    "18:12",
                    "4 h 46 min",
                    0,
                    "Seats must be reserved, 4.50 € each. From 36.90 € for adults. Step-free car 21.",
                ),
                (
                    "15:26",
                    "20:17",
                    "4 h 51 min",
                    1,
                    "Change in Fredericia, 12 minutes, lift out of service until 15 July.",
                ),
                ("17:26", "22:12", "4 h 46 min", 0, "From 24.90 € for adults. No food on board."),
            ],
        ),
    )
    search(
        s,
        "",
        "Geilo station lunch vegetarian indoor rain two hours step-free",
        [
            "Geilo station: lift to both platforms, waiting room with heating, lockers 6 €. The village street with shops begins 200 m from the station, flat.",
            "Bakeri Geilo: bakery with soup, salads and pancakes, 300 m from the station, open from 08:00 to 18:00. Step-free.",
            "Swimming hall Geilo: two pools and a slide, 16 € for adults, 9 € for children, 700 m from the station.",
            "Trains Bergen – Oslo in June 2027 with Geilo: Bergen 07:57 – Geilo 10:58 – Oslo 14:25; Bergen 11:59 – Geilo 15:01 – Oslo 18:31.",
            "Weather service: the forecast for Finse is reliable for about three days. 'Fresh snow' in June happens every second year.",
        ],
    )
    s.say(
        "**Home on 1 July.** The 11:26 is too tight if the boat is half an hour late, and then there would be no hour at the harbour. I'd take the 13:26: it needs no change, has the step-free car 21, and brings you home at 18:12. You'd have about three hours in Copenhagen. "
        "The terminal has lockers for the large suitcase (8 €), and from there a flat promenade of 600 m leads along the water; the yellow harbour bus 991 stops right there, if Henrik would rather sit. The price is 36.90 € for you and for Henrik, Ida is free with you, and 13.50 € for three seats: 87.30 € altogether. "
        "The 15:26 I'd avoid, because the lift in Fredericia is out of service. The 17:26 is cheaper by 24 €, but you'd be home after ten, with a tired child.\n\n"
        "**Plan B for Finse, 29 June.** I look at the forecast on 26 June, when it begins to be reliable. There are three cases:\n\n"
        "1. *Dry, or only a few showers:* as planned. Bergen 07:57, Finse 10:16 to 14:19, Oslo 18:31.\n"
        "2. *Rain or snow all day:* I ask you first, as you wanted. My proposal will be Geilo in place of Finse, with the same trains: out at 10:58, on at 15:01, in Oslo at 18:31. The station has a lift and a heated waiting room, the bakery has soup and pancakes, and Ida can go to the swimming hall with you (25 €) "
        "while Henrik reads. You'd see Finse through the window for three minutes.\n"
        "3. *Storm, so that trains are cancelled:* this is rare in June. Then the 11:59 is the last one that reaches Oslo at a decent hour without a break, and it would break your rule of five hours. I'd rather call Nordnes for a night more and move the boat, and I'd ask you before anything of that.\n\n"
        "The tickets should therefore be of the kind that can be changed until the evening before. They cost about 8 € more per adult, 16 € altogether."
    )
    s.user(
        "13:26 it is. Yes to tickets that can be changed. And for case 3: if trains are cancelled, call me, don't write, I rarely read messages on trips. My number there will be the one ending in 417."
    )
    s.say(
        "Noted: the 13:26 on 1 July, tickets that can be changed for 29 June, and in case 3 a call to the number ending in 417 instead of a message."
    )
    s.user(
        "Correction, sorry: I get a new number in May. The one ending in 417 is the old one, the new one ends in 902. Use only that."
    )
    s.say("Corrected: only the number ending in 902.")


def packed(s: Stage) -> None:
    """A packing list."""
    s.user(
        "Wonderful. One last thing, then I'm back on Monday after the call: can you make a packing list? We have two suitcases and a rucksack, and my father shouldn't carry anything. Not longer than a page."
    )
    s.say(
        "**For everyone, in the large suitcase:** rain jackets and rain trousers (no umbrellas, the wind in Bergen breaks them); two warm jumpers each; four sets of clothes each, since you can wash in Bergen after six days; shoes that have been walked in; hats and thin gloves for "
        "Finse, where it may snow in June; swimming things for the pool on the boat, the sea pool and the beach.\n\n"
        "**In the small suitcase, which goes along into the cabin:** night things for four of the nights, the wash bag, Ida's book and cards, slippers for Henrik, earplugs for whoever shares a room with him.\n\n"
        "**In the rucksack, which Marta carries:** documents and copies; Henrik's blood thinners in their box, with the page in English; Ida's tablets, one per trip; a knee bandage and a cooling pad (the café in Finse and the farm have freezers); water bottles; bread, apples and nuts for the "
        "train, as the trolley has little without meat; a power bank; the tickets on paper, because the tunnel before Flåm has no network.\n\n"
        "**Not needed:** hair dryers and towels (all four places have them), bed linen (it's in the price of the cabin), cash, a travel kettle.\n\n"
        "**Henrik carries** only his stick and his hat. Have the large suitcase sent ahead on the train Oslo – Bergen only if it costs less than 50 €; otherwise you'd ask me to ask you first."
    )
    s.user("Ha, yes. Good list. We'll send nothing ahead, Ida and I manage.")


def dropped_an_excursion(s: Stage) -> None:
    """An excursion that does not fit the limits."""
    s.user(
        "A colleague raves about the Hardangerfjord. Could we do that as a day trip from Bergen on Sunday the 27th? Check it honestly, please, I won't be sad if it's too much."
    )
    search(
        s,
        "",
        "Hardangerfjord day trip from Bergen Sunday June 2027 bus ferry step-free child price",
        [
            "Round trip with bus and ferry, Sundays: leaves Bergen 07:20, Norheimsund 08:45, ferry to Eidfjord (arrives 11:40), bus and train back by way of Voss, in Bergen at 19:55. 129 € for adults, 65 € for children up to 15 years.",
            "Short trip: bus Bergen – Norheimsund and back, 1 h 25 min each way, 31 € for adults, 16 € for children. Waterfall Steinsdalsfossen: 700 m from the bus stop, the path behind the waterfall is steep and wet.",
            "Cider farms near Ulvik: tours on weekdays only, from the age of 18.",
            "Forum: 'The bus has many bends between Kvamskogen and Tokagjelet. Our children were sick both ways.'",
            "Ferry Norheimsund – Eidfjord: no lift between the decks; the lounge is on the upper deck, 14 steps.",
        ],
    )
    s.say(
        "Honestly: I would leave it. The round trip takes more than twelve hours and costs 323 € for the three of you. The ferry has 14 steps and no lift, the bus has the bends that Ida can't stand, and it would be a second day with tablets after the 24th. "
        "The short trip to Norheimsund costs 78 € and is 2 h 50 min on the same bus for a waterfall whose path is steep and wet; Henrik would see it from the road.\n\n"
        "It also doesn't fit the money: 33 € are left of the budget, and both trips are above the 50 € extra that you want to be asked about.\n\n"
        "Sunday the 27th would rather be a good day for Fløyen before ten, and for cooking something large in the flat. I drop the Hardangerfjord because of the bends and the steps, not because of the money alone."
    )
    s.user("Agreed, no Hardanger. Fløyen on Sunday before ten.")


def shrank_again(s: Stage) -> None:
    """The fourth traveller drops out, but one fact of his stays."""
    s.user(
        "Jonas can't come after all, his leave was refused. So we're three again. Please go back to the smaller cabins if they still exist. If they don't, ask me before you give the large ones back!"
    )
    search(
        s,
        "I look before I give anything back.",
        "Sundfergen cabin with window three persons 19 June 30 June 2027",
        [
            "Sundfergen, Copenhagen – Oslo, 19 June 2027: 2 cabins with window, 329 €.",
            "Sundfergen, Oslo – Copenhagen, 30 June 2027: cabins with window sold out; large cabin with window sold out. Inside cabins: 14, 249 €.",
        ],
    )
    hold(
        s,
        "For 19 June there are two left. I hold one first, and give the large cabin back afterwards.",
        "Sundfergen Copenhagen – Oslo, 19 June 2027, cabin with window, 3 persons",
        "6 March 2027",
        "SF-41377",
        "329 €",
    )
    release(s, "", "SF-41302")
    s.say(
        "**North, 19 June:** the smaller cabin is held again (SF-41377, 329 €), the large one is given back.\n\n"
        "**Back, 30 June:** the smaller cabins with a window are sold out. I did not touch your large cabin (SF-41303, 418 €). The choices are:\n\n"
        "1. Keep the large cabin: 89 € more than the small one. That is more than 50 € extra, so it's your decision.\n"
        "2. An inside cabin for 249 €, without the window that Henrik needs.\n"
        "3. The boat on 1 July with a small cabin (345 €): one more night in Oslo (164 €), and you're home on 2 July.\n\n"
        "I would keep the large one. The second choice breaks a rule of yours, and the third costs more."
    )
    s.user("Keep the large cabin on 30 June. Four beds for three, Ida will be delighted.")
    s.say(
        "SF-41303 stays: the large cabin on 30 June, 418 €. So the boats are 747 € together: 329 € north and 418 € back."
    )


def came_back(s: Stage) -> None:
    """One hold goes wrong, and a number changes."""
    s.user(
        "The pension in Aurland wrote to me: they have a burst pipe, and the ground floor is closed until July. They offer rooms on the first floor without a lift."
    )
    s.say(
        "Then Aurland is out: your rule is a lift or the ground floor, and the first floor has neither. I'll look at what is left near Flåm for 23 to 25 June, before I give AU-118 back."
    )
    search(
        s,
        "",
        "Flåm Aurland ground floor 23-25 June 2027 three persons available",
        [
            place(
                "Brekke Hytter",
                124,
                "Cabin at ground level, two bedrooms, kitchen. One cabin left for 23–25 June. Bed linen 9 € each. Free cancellation until 7 days before.",
            ),
            place("Flåmsbrygga Rom", 238, "Family room with balcony, lift, breakfast included."),
            place(
                "Vangsgaarden Aurland",
                176,
                "Old house, family room on the ground floor, breakfast included, dinner 29 € each.",
                "The floor creaks, and the breakfast is generous.",
            ),
        ],
    )
    s.say(
        "Three possibilities:\n\n"
        "- **Brekke Hytter**, 124 € a night, 275 € for two nights with linen. Ground level, a kitchen, 1.4 km from the station. You'd cook yourselves; the farm sells eggs and bread. Counting food, it costs about the same as Aurland did.\n"
        "- **Vangsgaarden Aurland**, 176 € a night: above your limit of 170 €, so I ask. Ground floor and breakfast, but dinner is extra: about 500 € for two nights with everything.\n"
        "- **Flåmsbrygga Rom**, 238 €: you already said no.\n\n"
        "I'd take Brekke Hytter: it's the last cabin, and it can be cancelled until seven days before."
    )
    s.user(
        "Brekke Hytter, yes. Please hold it, and release Aurland. No taxi, we'll borrow their luggage cart, I asked."
    )
    hold(
        s,
        "",
        "Brekke Hytter, cabin at ground level, 23–25 June 2027, 2 nights, linen for 3",
        "8 March 2027",
        "BH-09",
        "275 €",
    )
    release(s, "", "AU-118")
    s.say(
        "Held: BH-09 (Brekke Hytter, 275 € for two nights with linen). AU-118 is given back. No taxi: you borrow the luggage cart."
    )
    s.user(
        "One more change: the doctor wants to see my father on 19 June in the morning, at nine. We can't take the 07:53. Is there anything later that still reaches the boat?"
    )
    search(
        s,
        "What I found before was for a Sunday, so I look at the Saturday.",
        "train Hamburg Copenhagen Saturday 19 June 2027",
        trains(
            "19 June 2027",
            "Hamburg",
            "Copenhagen",
            [
                ("05:53", "10:39", "4 h 46 min", 0, "Quiet car, step-free car 21."),
                ("07:53", "12:39", "4 h 46 min", 0, "Seats must be reserved (4.50 € each)."),
                ("09:53", "14:51", "4 h 58 min", 1, "Change in Fredericia, 9 minutes."),
                ("10:23", "16:02", "5 h 39 min", 2, "Only on Saturdays, by bus between Padborg and Kolding."),
                ("11:53", "16:39", "4 h 46 min", 0, "Seats must be reserved (4.50 € each)."),
                ("13:53", "18:39", "4 h 46 min", 0, "Seats must be reserved (4.50 € each)."),
            ],
        ),
    )
    s.say(
        "No. The 09:53 arrives at 14:51, which is after check-in closes at 14:15 and nine minutes before the boat leaves, and all later ones arrive after it has left. With an appointment at nine you can't reach the boat of the 19th.\n\n"
        "The choices are:\n\n"
        "1. Ask the practice for another day. It's a check-up, as I understand it?\n"
        "2. Leave on the 19th with the 13:53, sleep in Copenhagen, and take the boat on 20 June (329 €, eight cabins with a window when I looked). Then Oslo has one night less, and Bjerka has to be changed.\n\n"
        "I change nothing before you decide. The first choice costs nothing."
    )
    s.user(
        "I'll call the practice on Monday. Until then leave everything as it is. If they say no, we take the boat on the 20th."
    )
    s.say(
        "Good. Everything stays as it is until you have spoken with the practice. If they say no: boat on 20 June, one night in Copenhagen, one night less at Bjerka."
    )


def asked_what_is_open(s: Stage) -> None:
    """The person asks for the state of things."""
    s.user("Before I go: what do we hold right now, what is open, and by when do I have to pay?")
    s.say(
        "**Held now, nothing paid:**\n\n"
        "| what | days | reference | price | hold ends |\n"
        "|---|---|---|---|---|\n"
        "| boat Copenhagen – Oslo, cabin with window | 19 June | SF-41377 | 329 € | 6 March |\n"
        "| Hotell Bjerka, Oslo | 20 – 23 June | BJ-2260 | 492 € | 1 March |\n"
        "| Brekke Hytter, Flåm | 23 – 25 June | BH-09 | 275 € | 8 March |\n"
        "| Nordnes Leiligheter, Bergen | 25 – 29 June | NL-0717 | 608 € | 5 March |\n"
        "| Hotell Bjerka, Oslo | 29 – 30 June | BJ-2261 | 164 € | 1 March |\n"
        "| boat Oslo – Copenhagen, large cabin | 30 June | SF-41303 | 418 € | 27 February |\n\n"
        "That is 2,286 € of 3,600 €.\n\n"
        "**Open:**\n\n"
        "- [ ] Marta calls the practice on Monday; if they say no, the boat moves to 20 June\n"
        "- [ ] Pay SF-41303 before 27 February, the first hold that ends\n"
        "- [ ] Ask Ida's doctor about two tablets on 24 June\n"
        "- [ ] Seats on the 07:53 to Copenhagen, as soon as sales open in April\n"
        "- [ ] Train Oslo – Myrdal and the Flåm line on 23 June\n"
        "- [ ] Express boat Flåm – Bergen on 25 June\n"
        "- [ ] Train Bergen – Finse – Oslo on 29 June, after the forecast\n"
        "- [ ] Train Copenhagen – Hamburg on 1 July, the 13:26\n"
        "- [ ] Insurance with transport home for Henrik Vogt, at most 45 €\n"
        "- [ ] Henrik's certificate for the step-free seats"
    )


def main() -> int:
    """Writes the session. Returns the exit code."""
    stage = Stage(Path())
    play(stage)
    stage.save(TARGET)
    characters = sum(len(str(message["content"])) for message in stage.messages)
    print(f"{TARGET.name}: {len(stage.messages)} messages, {characters:,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
