"""How the bundled table of support tickets was made up; ``python -m tests.tables.tickets`` writes it again."""

import csv
import io
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

import empirisk.tables.reading

PLACE = Path(empirisk.tables.reading.__file__).parent / "data" / "tickets.csv"
CALM = ["how do I change my address", "please send the invoice again", "thank you the new version works well"]
CALM += ["can I add another user to my plan", "where do I find the manual", "a question about the next release"]
ANGRY = ["the system is down again and nobody answers", "this is the third time I report the same error"]
ANGRY += ["we lost data and need help at once", "I want my money back", "the update broke our work completely"]
ENDINGS = ["", " thanks", " please answer soon", " since Monday", " on all our machines", " as I wrote before"]
GREETINGS = ["", "hello ", "good morning ", "dear team ", "hi there ", "to whom it may concern "]
HEADER = ["ticket_id", "opened", "product", "channel", "customer_age", "plan", "monthly_fee", "earlier_tickets", "vip"]
HEADER += ["message", "office", "escalated"]


def text(rows: int = 600, seed: int = 1) -> str:
    """The table as CSV: numbers, words, dates, text, gaps, an identifier and a constant."""
    random = np.random.default_rng(seed)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    start = datetime(2023, 1, 1)
    for number in range(rows):
        opened = start + timedelta(minutes=int(random.integers(2 * 365 * 24 * 60)))
        plan = str(random.choice(["free", "basic", "business"], p=[0.3, 0.45, 0.25]))
        fee = {"free": 0.0, "basic": 19.0, "business": 99.0}[plan] * random.uniform(0.8, 1.2)
        earlier = int(random.poisson(2.0))
        angry = random.random() < 0.15 + 0.08 * earlier
        vip = plan == "business" and random.random() < 0.4
        message = "".join(map(str, (random.choice(part) for part in (GREETINGS, ANGRY if angry else CALM, ENDINGS))))
        score = -2.6 + 2.4 * angry + 1.2 * vip + 0.35 * earlier + 0.9 * (opened.weekday() >= 5) + random.normal(0, 0.7)
        age = "" if random.random() < 0.12 else str(int(random.integers(18, 80)))
        channel = "NA" if random.random() < 0.05 else str(random.choice(["mail", "phone", "chat"]))
        product = str(random.choice(["Alpha", "Beta", "Gamma", "Delta", "Köln edition"], p=[0.4, 0.3, 0.2, 0.08, 0.02]))
        row = [f"T{100000 + 7 * number}", opened.strftime("%Y-%m-%d %H:%M"), product, channel, age, plan, f"{fee:.2f}"]
        writer.writerow([*row, earlier, "yes" if vip else "no", message, "Ulm", "yes" if score > 0 else "no"])
    return out.getvalue()


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
