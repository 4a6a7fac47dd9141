"""How a crew of threads shares one job: slots are claimed from a ticket, the leader claims what nobody else has.

A ticket holds a job's number, how many slots it has, and the next free one, so that one comparison decides whether a
claim still belongs to the job that the claimer saw.

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
from topos_core.kernels.vocabulary.blocks import CREW, WORKER
from topos_core.kernels.vocabulary.memory import call, reader, set_word

get = reader(CREW)
own = reader(WORKER)
SLOT_BITS = 16
TICKET, DONE = 8 * CREW.index("ticket"), 8 * CREW.index("done")
ASLEEP, WORKER_BYTES = 8 * WORKER.index("asleep"), 8 * len(WORKER)
SPINS = 2000  # pauses before a waiting leader lets others run


def kernel(host: Host, role: str) -> Any:
    """Makes `lead` (crew, slots), which runs a job to its end, or `follow` (worker, unused), which helps for ever."""
    relax = relaxing(host)
    mask, ticket_at, done_at, patience = (1 << SLOT_BITS) - 1, TICKET, DONE, SPINS
    asleep_at, worker_bytes = ASLEEP, WORKER_BYTES

    def lead(crew, slots):  # type: ignore[no-untyped-def]
        set_word(crew + done_at, 0, 0)
        ticket = observe(crew + ticket_at)
        publish(crew + ticket_at, (((ticket >> 32) + 1) << 32) | (slots << 16))
        for helper in range(get(crew, "helpers")):
            worker = get(crew, "workers") + helper * worker_bytes
            if observe(worker + asleep_at) != 0 and exchange(worker + asleep_at, 1, 0) != 0:
                unlock(get(crew, "unlock"), own(worker, "gate"))
        claimed = 1
        while claimed != 0:
            claimed = 0
            ticket = observe(crew + ticket_at)
            slot = ticket & mask
            if slot < slots:
                claimed = 1
                if exchange(crew + ticket_at, ticket, ticket + 1) != 0:
                    call(get(crew, "kernel"), get(crew, "block"), slot)
                    count(crew + done_at)
        waited = 0
        while observe(crew + done_at) < slots:
            relax()
            waited += 1
            if waited > patience:
                give_way()

    def follow(worker, unused):  # type: ignore[no-untyped-def]
        crew = own(worker, "crew")
        while True:
            idle = 0
            while idle < get(crew, "spins"):
                ticket = observe(crew + ticket_at)
                slot = ticket & mask
                if slot < (ticket >> 16) & mask:
                    if exchange(crew + ticket_at, ticket, ticket + 1) != 0:
                        call(get(crew, "kernel"), get(crew, "block"), slot)
                        count(crew + done_at)
                    idle = 0
                else:
                    relax()
                    idle += 1
            publish(worker + asleep_at, 1)
            ticket = observe(crew + ticket_at)
            if not ((ticket & mask) < (ticket >> 16) & mask and exchange(worker + asleep_at, 1, 0) != 0):
                lock(get(crew, "lock"), own(worker, "gate"))

    return lead if role == "lead" else follow
