"""How a crew of threads shares one job: slots are claimed from a ticket, the leader claims what nobody else has.

A ticket holds a job's number and which slots are free, so that one comparison decides whether a claim still belongs to the
job that the claimer saw. Slot 0 is the leader's, every worker has one that it prefers, since a slot's items are mostly in
the caches of who had it last (`vocabulary/sharing.py`).

A worker that finds nothing for a while says that it sleeps, looks once more, and waits on its gate. The leader publishes
the ticket before it looks who sleeps, so either it sees the sleeper or the sleeper sees the job; whichever of them takes
back the word `asleep` acts on it, so a gate is opened once for each wait. None of this needs the interpreter lock.
"""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.atomic import (
    count,
    exchange,
    give_way,
    lock,
    observe,
    publish,
    relaxing,
    unlock,
)
from topos_core.kernels.vocabulary.blocks import CREW, LINE, WORKER
from topos_core.kernels.vocabulary.memory import call, reader, set_word

get = reader(CREW)
own = reader(WORKER)
SLOT_BITS = 32
TICKET, DONE = 8 * CREW.index("ticket"), 8 * CREW.index("done")
ASLEEP, WORKER_BYTES = 8 * WORKER.index("asleep"), 8 * len(WORKER)
SPINS = 2000  # pauses before a waiting leader lets others run


def kernel(host: Host, role: str) -> Any:
    """Makes `lead` (crew, slots), which runs a job to its end, or `follow` (worker, unused), which helps for ever."""
    relax = relaxing(host)
    bits, ticket_at, done_at, patience = SLOT_BITS, TICKET, DONE, SPINS
    asleep_at, worker_bytes, line = ASLEEP, WORKER_BYTES, LINE
    slots_of, jobs = (1 << SLOT_BITS) - 1, (1 << (63 - SLOT_BITS)) - 1

    def lead(crew, slots):  # type: ignore[no-untyped-def]
        set_word(get(crew, "counters"), 0, slots)
        for part in range(slots):
            set_word(get(crew, "counters") + (part + 1) * line, 0, 0)
        set_word(crew + done_at, 0, 0)
        job = ((observe(crew + ticket_at) >> bits) + 1) & jobs
        publish(crew + ticket_at, job << bits | ((1 << slots) - 2))
        for helper in range(get(crew, "helpers")):
            worker = get(crew, "workers") + helper * worker_bytes
            if observe(worker + asleep_at) != 0 and exchange(worker + asleep_at, 1, 0) != 0:
                unlock(get(crew, "unlock"), own(worker, "gate"))
        call(get(crew, "kernel"), get(crew, "block"), 0)
        count(crew + done_at)
        ticket = observe(crew + ticket_at)
        while ticket & slots_of != 0:
            slot = 1
            while (ticket >> slot) & 1 == 0:
                slot += 1
            if exchange(crew + ticket_at, ticket, ticket - (1 << slot)) != 0:
                call(get(crew, "kernel"), get(crew, "block"), slot)
                count(crew + done_at)
            ticket = observe(crew + ticket_at)
        waited = 0
        while observe(crew + done_at) < slots:
            relax()
            waited += 1
            if waited > patience:
                give_way()

    def follow(worker, unused):  # type: ignore[no-untyped-def]
        crew, mine = own(worker, "crew"), own(worker, "slot")
        while True:
            idle = 0
            while idle < get(crew, "spins"):
                ticket = observe(crew + ticket_at)
                if ticket & slots_of != 0:
                    slot = mine
                    if (ticket >> slot) & 1 == 0:
                        slot = 1
                        while (ticket >> slot) & 1 == 0:
                            slot += 1
                    if exchange(crew + ticket_at, ticket, ticket - (1 << slot)) != 0:
                        call(get(crew, "kernel"), get(crew, "block"), slot)
                        count(crew + done_at)
                    idle = 0
                else:
                    relax()
                    idle += 1
            publish(worker + asleep_at, 1)
            if not (observe(crew + ticket_at) & slots_of != 0 and exchange(worker + asleep_at, 1, 0) != 0):
                lock(get(crew, "lock"), own(worker, "gate"))

    return lead if role == "lead" else follow
